"""Frames over 1 MiB are cut through: they pass as they come, are judged once, and keep their place."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.quota.quota import Quota
from proxy.quota.verdict import Verdict
from proxy.relay.errors import BROKER_PROTOCOL_ERROR, CLIENT_PROTOCOL_ERROR
from proxy.relay.local import unsupported_api_versions
from proxy.relay.relay import Relay
from proxy.relay.traffic import Traffic
from proxy.wire.views import NO_ID
from tests.support.exchanges import (
    TOPIC,
    answered,
    api_versions,
    fetch,
    fetch_response,
    fetched,
    milliseconds,
    opaque,
    produce,
    produced,
)
from tests.support.messages import (
    BROKER_HOST,
    Ports,
    framed,
    is_without_endpoints,
    parts_of,
    read_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
    through_proxy,
)
from tests.support.old_messages import fetch_request as old_fetch
from tests.support.old_messages import fetch_response as old_fetched
from tests.support.playbook import EVERYONE, MAX_FRAME_BYTES, Playbook, new_relay

MIB = 1 << 20
SLOW = {EVERYONE: {"producer_byte_rate": MIB, "consumer_byte_rate": MIB}}
HOST = BROKER_HOST.encode()


def chunks(frame, size=65_536):
    return [frame[at : at + size] for at in range(0, len(frame), size)]


# Requests


def test_nothing_of_a_large_request_goes_on_before_one_mebibyte_is_there():
    request = produce(1, size=3 * MIB)
    story = Playbook(new_relay()).client(request[:4]).to_broker()
    story.client(request[4 : MIB - 1]).to_broker().busy()
    story.client(request[MIB - 1 : MIB]).to_broker(request[:MIB]).busy()
    story.client(request[MIB : 2 * MIB]).to_broker(request[MIB : 2 * MIB]).busy()
    story.client(request[2 * MIB :]).to_broker(request[2 * MIB :])
    story.broker(produced(1)).to_client(produced(1)).idle()


def test_a_request_of_exactly_one_mebibyte_is_taken_whole():
    request = produce(1, size=MIB - 4)
    Playbook(new_relay()).client(request[:-1]).to_broker().client(request[-1:]).to_broker(request)


def test_requests_around_a_large_one_keep_their_order():
    large = produce(2, size=2 * MIB)
    story = Playbook(new_relay()).client(*chunks(opaque(1) + large + opaque(3)))
    story.to_broker(opaque(1), large, opaque(3))
    story.broker(answered(1) + produced(2) + answered(3))
    story.to_client(answered(1), produced(2), answered(3)).idle()


@pytest.mark.parametrize("kind", ["opaque", "acks 0", "acks 0, v13"])
def test_large_requests_of_other_kinds(kind):
    large = {
        "opaque": opaque(1, body=bytes(2 * MIB)),
        "acks 0": produce(1, size=2 * MIB, acks=0),
        "acks 0, v13": opaque(1, 0, 13, b"\0\0" + b"\0\0" + bytes(4) + b"\x01\0" + bytes(2 * MIB)),
    }[kind]
    story = Playbook(new_relay()).client(*chunks(large + opaque(2))).to_broker(large, opaque(2))
    if kind == "opaque":
        story.broker(answered(1)).to_client(answered(1))
    story.broker(answered(2)).to_client(answered(2)).idle()


def test_a_large_request_is_judged_at_its_start_and_passes_to_its_end():
    large = produce(1, size=3 * MIB)
    story = Playbook(new_relay(SLOW)).client(large[:MIB]).to_broker(large[:MIB])
    story.unmuted().timer(2.0)  # in the middle of a frame there is nothing to mute
    story.client(large[MIB:-1]).to_broker(large[MIB:-1]).unmuted()
    story.at(0.5).client(large[-1:] + opaque(2)).to_broker(large[-1:]).muted(2.0).busy()
    story.broker(produced(1)).to_client(produced(1, throttle_ms=1500))
    story.at(2.0).to_broker(opaque(2)).unmuted()


def test_a_large_request_that_takes_longer_than_its_wait():
    large = produce(1, size=3 * MIB)
    story = Playbook(new_relay(SLOW)).client(large[:MIB]).to_broker(large[:MIB]).timer(2.0)
    story.at(2.0).timer(None).client(large[MIB:] + opaque(2)).to_broker(large[MIB:], opaque(2)).unmuted()


def test_a_request_behind_a_muted_one_may_be_large():
    first, large = produce(1, size=2 * MIB - 4), produce(2, size=2 * MIB)
    story = Playbook(new_relay(SLOW)).client(first + large[: MIB + 9]).to_broker(first)
    story.muted(1.0 - 4 / MIB).at(1.0).to_broker(large[: MIB + 9]).client(large[MIB + 9 :])
    story.to_broker(large[MIB + 9 :])


def wide_fetch(max_bytes):
    """A Fetch request whose rack is longer than a mebibyte."""
    request = read_frame(request_type(1, 12), fetch(1, max_bytes=max_bytes, version=12))
    return request_frame(replace(request, rack_id="r" * MIB))


def test_a_large_fetch_request_is_bounded_as_well():
    asked, bounded = wide_fetch(50 * MIB), wide_fetch(MIB)
    story = Playbook(new_relay(SLOW)).client(asked[:MIB]).to_broker(bounded[:MIB])
    story.client(asked[MIB:] + opaque(2)).to_broker(bounded[MIB:], opaque(2))


def test_a_large_fetch_request_before_v3_passes_as_it_is():
    asked = old_fetch(2, 1, {TOPIC: dict.fromkeys(range(MIB // 16 + 1), 50 * MIB)})
    assert len(asked) > MIB
    Playbook(new_relay(SLOW)).client(asked[:MIB], asked[MIB:]).to_broker(asked)


def test_records_of_a_large_request_are_counted_by_partition():
    traffic = Traffic(topic_partitions=True)
    request = read_frame(request_type(0, 7), produce(1, size=100))
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    sizes = [MIB, 0, 5, 3 * MIB, 70]
    many = tuple(replace(partition, index=at, records=bytes(size)) for at, size in enumerate(sizes))
    large = request_frame(replace(request, topic_data=(replace(topic, partition_data=many),)))
    story = Playbook(new_relay(traffic=traffic)).client(*chunks(large)).to_broker(large)
    story.broker(produced(1)).to_client(produced(1))
    got = {key: counters.bytes_in for key, counters in traffic.partitions.items()}
    assert got == {(TOPIC, NO_ID, at): size for at, size in enumerate(sizes)}


def counting():
    return Playbook(new_relay(traffic=Traffic(topic_partitions=True)))


def test_a_large_request_that_ends_too_early():
    """Its records are said to be a byte longer than they are."""
    large = produce(1, size=2 * MIB)
    (topic,) = read_frame(request_type(0, 7), large).topic_data
    size = len(topic.partition_data[0].records)
    large = large.replace(size.to_bytes(4, "big"), (size + 1).to_bytes(4, "big"), 1)
    story = counting().client(large[:MIB])
    story.client_fails(large[MIB:], reason=CLIENT_PROTOCOL_ERROR, says="1 bytes of records are to come")


def test_a_large_request_that_does_not_parse_further_on():
    large = produce(1, size=2 * MIB)
    request = read_frame(request_type(0, 7), large)
    (topic,) = request.topic_data
    bad = request_frame(replace(request, topic_data=(topic, topic)))
    # The second topic's name gets a length that cannot be.
    at = bad.rindex(TOPIC.encode()) - 2
    bad = bad[:at] + b"\x80\0" + bad[at + 2 :]
    story = counting().client(bad[: 2 * MIB - 9])
    story.client_fails(bad[2 * MIB - 9 :], reason=CLIENT_PROTOCOL_ERROR, says="a string of length -32768")


def test_a_field_that_has_no_end_is_not_held_for_ever():
    """What is read has to be held: a client must not announce a name of 50 MiB and have the proxy keep it."""
    name = b"\xff\xff\xff\x18"  # 50 MiB and more, as a compact length
    head = opaque(1, 0, 9, b"\0" + b"\0" + b"\0\1" + bytes(4) + b"\x02" + name)
    large = (60 * MIB).to_bytes(4, "big") + head[4:]
    story = counting().client(large + bytes(MIB))
    story.client_fails(
        *[bytes(65_536)] * 17, reason=CLIENT_PROTOCOL_ERROR, says="a field of the request is longer than"
    )


def test_a_head_that_does_not_fit_is_not_waited_for():
    """A transactional_id of more than a mebibyte: nothing is known of the request before it."""
    large = opaque(1, 0, 9, b"\0" + b"\xff\xff\x7f" + bytes(2 * MIB))
    story = Playbook(new_relay())
    story.client_fails(large[:MIB], reason=CLIENT_PROTOCOL_ERROR, says="at offset 1048576")
    story.to_broker()


# Responses


def test_a_large_response_passes_as_it_comes():
    answer = fetched(1, size=3 * MIB)
    story = (
        Playbook(new_relay()).client(fetch(1)).to_broker(fetch(1)).broker(answer[:4095]).to_client().busy()
    )
    story.broker(answer[4095:4096]).to_client(answer[:4096]).busy()
    story.broker(answer[4096:MIB]).to_client(answer[4096:MIB]).busy()
    story.broker(answer[MIB:]).to_client(answer[MIB:]).idle()


def test_answers_around_a_large_one_keep_their_order():
    large = fetched(2, size=2 * MIB)
    story = Playbook(new_relay()).client(opaque(1) + fetch(2) + opaque(3))
    story.broker(*chunks(answered(1) + large + answered(3))).to_client(answered(1), large, answered(3)).idle()


def test_a_large_answer_to_an_opaque_request():
    large = answered(1, bytes(2 * MIB))
    story = (
        Playbook(new_relay())
        .client(opaque(1) + opaque(2))
        .broker(large[:5000])
        .to_client(large[:5000])
        .busy()
    )
    story.broker(large[5000:] + answered(2)).to_client(large[5000:], answered(2)).idle()


def test_a_local_answer_waits_for_the_end_of_a_large_one():
    large = fetched(1, size=2 * MIB)
    for request, answer in ((fetch(1), large), (opaque(1), answered(1, bytes(2 * MIB)))):
        story = Playbook(new_relay()).client(request).broker(answer[:MIB]).to_client(answer[:MIB])
        story.client(api_versions(2)).to_client().busy()
        story.broker(answer[MIB:]).to_client(answer[MIB:], unsupported_api_versions(2, 0, 4)).idle()


@pytest.mark.parametrize("version", [4, 11, 12, 15, 16, 18])
def test_a_large_response_announces_its_wait_and_mutes_at_once(version):
    answer, patched = (fetched(1, size=3 * MIB, throttle_ms=ms, version=version) for ms in (0, 2000))
    story = Playbook(new_relay(SLOW)).client(fetch(1, max_bytes=9, version=version))
    story.broker(answer[:5000]).to_client(patched[:5000]).muted(2.0)
    story.broker(*chunks(answer[5000:])).to_client(patched[5000:]).muted(2.0)
    story.at(2.0).unmuted().idle()


def endpoints(response):
    node = response.__annotations__["node_endpoints"].__args__[0]
    return tuple(node(node_id=at, host=f"{BROKER_HOST}.{at}", port=9092, rack=None) for at in (1, 2))


def large_fetch_response(version):
    response = fetch_response(version, bytes(2 * MIB))
    return replace(response, node_endpoints=endpoints(type(response)))


def large_produce_response(version):
    message = response_type(0, version)
    topic = message.__annotations__["responses"].__args__[0]
    partition = topic.__annotations__["partition_responses"].__args__[0]
    partitions = (
        partition(
            index=0,
            error_code=ErrorCode(6),
            base_offset=0,
            record_errors=(),
            error_message="not the leader " * (2 * MIB // 15),
        ),
    )
    name = {"name": TOPIC} if version < 13 else {"topic_id": None}
    topics = (topic(partition_responses=partitions, **name),)
    return message(responses=topics, node_endpoints=endpoints(message))


def large_share_response(api_key, version):
    message = response_type(api_key, version)
    topic = message.__annotations__["responses"].__args__[0]
    partition = topic.__annotations__["partitions"].__args__[0]
    leader = partition.__annotations__["current_leader"]
    fields = {"acknowledge_error_code": 0, "records": b"", "acquired_records": ()} if api_key == 78 else {}
    part = partition(
        partition_index=0,
        error_code=ErrorCode(6),
        error_message="not the leader " * (2 * MIB // 15),
        current_leader=leader(leader_id=1, leader_epoch=1),
        **fields,
    )
    more = {}
    if "acquisition_lock_timeout" in message.__annotations__:
        more["acquisition_lock_timeout"] = milliseconds(0)
    return message(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        responses=(topic(topic_id=None, partitions=(part,)),),
        node_endpoints=endpoints(message),
        **more,
    )


LARGE = [
    *[large_fetch_response(version) for version in (16, 17, 18)],
    *[large_produce_response(version) for version in (10, 11, 12, 13)],
    *[large_share_response(key, version) for key in (78, 79) for version in (1, 2)],
]


class Waiting(Quota):
    """Every request waits, as no API but Produce and the two Fetches does as yet."""

    def __init__(self, seconds):
        super().__init__((0, 1, 10, 60, 78, 79))
        self.seconds = seconds

    def admit(self, request, who, now):
        return Verdict(self.seconds)


def waiting(seconds):
    engine = QuotaEngine([Waiting(seconds)])
    return Playbook(Relay(engine, Ports(), Traffic(), "ANONYMOUS", "127.0.0.1", MAX_FRAME_BYTES))


def asked(response):
    """A request to which this is the answer."""
    key, version = response.__api_key__, response.__version__
    body = {0: b"\0" + b"\0" + b"\0\1" + bytes(5), 1: b"\0" + bytes(16)}
    return opaque(1, key, version, body.get(key, b"\0"))


def ids(response):
    return f"{response.__api_key__}v{response.__version__}"


@pytest.mark.parametrize("throttle_ms", [0, 1500])
@pytest.mark.parametrize("response", LARGE, ids=ids)
def test_endpoints_at_the_end_of_a_large_response_are_taken_out(response, throttle_ms):
    """Its length is on its way by then: they are a hint, and clients do without."""
    frame = response_frame(response)
    for size in (5000, 65_536, len(frame) - 100, len(frame) - 50, len(frame) - 1):
        story = waiting(throttle_ms / 1000).client(asked(response)).broker(*chunks(frame, size)).idle()
        passed = b"".join(story.relay.take_to_client())
        assert len(passed) == len(frame)
        assert HOST not in passed
        assert is_without_endpoints(passed, replace(response, throttle_time=milliseconds(throttle_ms)))


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(LARGE),
    st.lists(st.integers(1, 300) | st.integers(1, MIB), max_size=8),
    st.integers(1, 60),
)
def test_a_large_response_in_parts_of_any_size(response, sizes, last):
    """Small parts at both ends, where there is something to read, and large ones between."""
    frame = response_frame(response)
    cuts = [sum(sizes[:count]) for count in range(1, len(sizes) + 1)]
    cuts += [len(frame) - last * count for count in range(1, 5)]
    parts = parts_of(frame, [cut for cut in cuts if cut < len(frame)])
    passed = waiting(1.5).client(asked(response)).broker(*parts).idle().relay.take_to_client()
    told = replace(response, throttle_time=milliseconds(1500))
    assert is_without_endpoints(b"".join(passed), told)


@pytest.mark.parametrize("response", LARGE, ids=ids)
def test_endpoints_of_a_large_response_that_is_there_at_once_are_rewritten(response):
    story = waiting(1.5).client(asked(response)).broker(response_frame(response)).idle()
    passed = b"".join(story.relay.take_to_client())
    wanted = replace(through_proxy(response), throttle_time=milliseconds(1500))
    assert read_frame(type(response), passed) == wanted


def test_a_large_head_announces_its_wait_as_well():
    """ShareFetch's error_message stands in the head, and so the head is not there with the first part."""
    response = replace(large_share_response(78, 1), error_message="x" * 2 * MIB)
    frame = response_frame(response)
    story = waiting(1.5).client(asked(response)).broker(*chunks(frame))
    passed = b"".join(story.relay.take_to_client())
    assert is_without_endpoints(passed, replace(response, throttle_time=milliseconds(1500)))


def test_the_brokers_own_wait_counts_though_it_came_in_two_parts():
    """In a Produce response it stands behind all the rest."""
    response = replace(large_produce_response(13), throttle_time=milliseconds(9000))
    frame = response_frame(response)
    field = frame.rindex((9000).to_bytes(4, "big"))
    for cut in range(field, field + 6):
        story = waiting(1.5).client(asked(response)).broker(frame[:cut], frame[cut:]).idle()
        assert is_without_endpoints(b"".join(story.relay.take_to_client()), response)


def metadata(topics):
    message = response_type(3, 12)
    broker = message.__annotations__["brokers"].__args__[0]
    topic = message.__annotations__["topics"].__args__[0]
    made = topic(error_code=ErrorCode.none, name="n" * 1000, topic_id=None, partitions=())
    brokers = tuple(broker(node_id=at, host=f"{BROKER_HOST}.{at}", port=9092) for at in range(300))
    return message(throttle_time=milliseconds(0), brokers=brokers, topics=(made,) * topics)


def find_coordinator():
    message = response_type(10, 4)
    coordinator = message.__annotations__["coordinators"].__args__[0]
    made = coordinator(
        key="k", node_id=1, host=BROKER_HOST, port=9092, error_code=ErrorCode.none, error_message="e" * MIB
    )
    return message(throttle_time=milliseconds(0), coordinators=(made, made))


def describe_cluster():
    message = response_type(60, 2)
    broker = message.__annotations__["brokers"].__args__[0]
    made = broker(broker_id=3, host=BROKER_HOST, port=9092, rack="r" * MIB, is_fenced=False)
    return message(
        throttle_time=milliseconds(0), error_code=ErrorCode.none, cluster_id="c", brokers=(made, made)
    )


@pytest.mark.parametrize("response", [metadata(1200), find_coordinator(), describe_cluster()], ids=ids)
@pytest.mark.parametrize("size", [4096, 65_536, MIB])
def test_addresses_at_the_front_of_a_large_response_are_rewritten(response, size):
    throttle_ms = 0 if response.__api_key__ == 3 else 1500
    story = waiting(1.5).client(asked(response)).broker(*chunks(response_frame(response), size)).idle()
    passed = b"".join(story.relay.take_to_client())
    wanted = replace(through_proxy(response), throttle_time=milliseconds(throttle_ms))
    assert read_frame(type(response), passed) == wanted


def test_the_topics_of_a_large_metadata_response_pass_as_they_come():
    frame = response_frame(metadata(1200))
    story = Playbook(new_relay()).client(opaque(1, 3, 12, b"\0")).broker(frame[:50_000])
    passed = b"".join(story.relay.take_to_client())
    growth = len(passed) - 50_000
    assert int.from_bytes(passed[:4], "big") == len(frame) - 4 + growth
    story.broker(frame[50_000:60_000]).to_client(frame[50_000:60_000])
    story.broker(frame[60_000:]).to_client(frame[60_000:]).idle()


def test_a_large_answer_without_a_field_for_the_wait_is_held():
    request, answer = old_fetch(0, 1, {TOPIC: {0: 1}}), old_fetched(0, 1, {TOPIC: {0: bytes(2 * MIB)}})
    wait = (len(answer) - 4 - MIB) / MIB
    story = Playbook(new_relay(SLOW)).client(request + opaque(2)).broker(*chunks(answer + answered(2)))
    story.to_client().muted(wait).busy()
    story.at(wait).to_client(answer, answered(2)).idle()


def test_records_of_a_large_response_are_counted_by_partition():
    traffic = Traffic(topic_partitions=True)
    response = fetch_response(18, bytes(MIB))
    response = replace(response, responses=response.responses * 3)
    story = Playbook(new_relay(traffic=traffic)).client(fetch(1, version=18))
    story.broker(*chunks(response_frame(response))).to_client(response_frame(response))
    assert [counters.bytes_out for counters in traffic.partitions.values()] == [3 * MIB]


def test_a_large_response_that_ends_too_early():
    frame = response_frame(large_fetch_response(18))
    cut = framed(frame[4 : 2 * MIB])
    story = Playbook(new_relay()).client(fetch(1, version=18)).broker(cut[:MIB])
    story.broker_fails(cut[MIB:], reason=BROKER_PROTOCOL_ERROR, says="bytes of records are to come")
