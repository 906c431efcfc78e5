"""Partitions of Produce requests that quotas reject: cut out, told of in the response, and kept in order."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE, PRODUCER_BYTE_RATE_ACTION, REJECT
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.relay.close_reasons import PRODUCE_REJECTED
from proxy.relay.counters.traffic import Traffic
from proxy.relay.requests.produce_gate import FULL_READ_BYTES
from proxy.wire.edit import LENGTH_SIZE
from tests.support.messages import old_messages
from tests.support.messages.exchanges import milliseconds, opaque
from tests.support.messages.kio_messages import (
    Ports,
    parts_of,
    read_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.support.present import present
from tests.support.quotas.buckets import live_buckets
from tests.support.stories.playbook import EVERYONE, Playbook, Quotas, drive, engine, new_relay

MIB = 1 << 20
VERSION = 9
HOT, COLD = "hot", "cold"
REJECTING = Resources({HOT: {PRODUCER_BYTE_RATE.name: "1000", PRODUCER_BYTE_RATE_ACTION.name: REJECT}})
LARGE = Resources({HOT: {PRODUCER_BYTE_RATE.name: str(MIB), PRODUCER_BYTE_RATE_ACTION.name: REJECT}})


def records(size: int, sequence: int = 0, producer_id: int = 7) -> bytes:
    """A batch with ten records from this sequence number on."""
    head = bytes(16) + b"\x02" + bytes(6) + (9).to_bytes(4, "big") + bytes(16)
    head += producer_id.to_bytes(8, "big", signed=True) + bytes(2) + sequence.to_bytes(4, "big", signed=True)
    return head + bytes(size - len(head))


def request(
    number: int, sizes: Mapping[str, Iterable[int]], version: int = VERSION, acks: int = -1, sequence: int = 0
) -> bytes:
    """sizes: topic -> bytes of records for its partitions from 0 on."""
    schema = request_type(0, version)
    of = schema.__annotations__["topic_data"].__args__[0]
    data = of.__annotations__["partition_data"].__args__[0]
    topics = tuple(
        of(
            name=topic,
            partition_data=tuple(
                data(index=index, records=records(size, sequence)) for index, size in enumerate(each)
            ),
        )
        for topic, each in sizes.items()
    )
    message = schema(transactional_id=None, acks=acks, timeout=milliseconds(30_000), topic_data=topics)
    return request_frame(message, number)


def response(
    number: int,
    partitions: Mapping[str, Mapping[int, tuple[int, int]]],
    version: int = VERSION,
    wait: int = 0,
) -> bytes:
    """partitions: topic -> partition -> error code and offset."""
    schema = response_type(0, version)
    of = schema.__annotations__["responses"].__args__[0]
    data = of.__annotations__["partition_responses"].__args__[0]
    more = {"record_errors": ()} if version >= 8 else {}
    topics = tuple(
        of(
            name=topic,
            partition_responses=tuple(
                data(index=index, error_code=ErrorCode(code), base_offset=offset, **more)
                for index, (code, offset) in each.items()
            ),
        )
        for topic, each in partitions.items()
    )
    return response_frame(schema(responses=topics, throttle_time=milliseconds(wait)), number)


def told(story: Playbook, version: int = VERSION) -> tuple[dict[str, dict[int, int]], int]:
    """What the client reads: error codes by topic and partition, and the wait in milliseconds."""
    message = read_frame(response_type(0, version), b"".join(story.relay.take_to_client()))
    codes = {
        topic.name: {partition.index: partition.error_code.value for partition in topic.partition_responses}
        for topic in message.responses
    }
    return codes, round(message.throttle_time.total_seconds() * 1000)


def story(
    resources: Resources = REJECTING, quotas: Quotas | None = None, traffic: Traffic | None = None
) -> Playbook:
    return Playbook(new_relay(quotas, traffic, resources=resources))


def over(told_story: Playbook, used: int = 1500) -> Playbook:
    """Put partition 0 of the hot topic 500 bytes over its limit of 1000, or as many more as are used."""
    first = request(1, {HOT: [used]})
    accepted = response(1, {HOT: {0: (0, 1)}})
    return told_story.client(first).to_broker(first).broker(accepted).to_client(accepted).unmuted()


def test_what_is_over_is_cut_out_and_the_rest_goes_on() -> None:
    sizes = {COLD: [100], HOT: [300, 300]}
    told_story = over(story()).client(request(2, sizes, sequence=10))
    sent = read_frame(request_type(0, VERSION), b"".join(told_story.relay.take_to_broker()))
    assert [
        (topic.name, [partition.index for partition in topic.partition_data]) for topic in sent.topic_data
    ] == [(COLD, [0]), (HOT, [1])]
    told_story.unmuted().broker(response(2, {COLD: {0: (0, 5)}, HOT: {1: (0, 6)}}))
    assert told(told_story) == ({COLD: {0: 0}, HOT: {1: 0, 0: 19}}, 0)


def test_a_topic_of_which_nothing_is_left_goes_as_well() -> None:
    told_story = over(story()).client(request(2, {HOT: [300], COLD: [100]}, sequence=10))
    told_story.to_broker(request(2, {COLD: [100]}, sequence=10)).broker(response(2, {COLD: {0: (0, 5)}}))
    assert told(told_story) == ({COLD: {0: 0}, HOT: {0: 19}}, 0)


def test_a_request_of_which_nothing_is_left_gets_a_local_response_in_its_turn() -> None:
    told_story = over(story()).client(opaque(2) + request(3, {HOT: [300]}, sequence=10))
    told_story.to_broker(opaque(2)).to_client()
    response = b"\0\0\0\x08\0\0\0\x02done"
    told_story.broker(response)
    got = b"".join(told_story.relay.take_to_client())
    assert got.startswith(response)
    message = read_frame(response_type(0, VERSION), got[len(response) :])
    (partition,) = message.responses[0].partition_responses
    assert partition.error_code is ErrorCode.not_enough_replicas
    told_story.idle()


@pytest.mark.parametrize("version", [3, 5, 8, 12])
def test_every_version_is_answered(version: int) -> None:
    told_story = over(story()).client(request(2, {HOT: [300]}, version, sequence=10)).to_broker()
    assert told(told_story, version) == ({HOT: {0: 19}}, 0)


def test_what_keeps_coming_to_be_rejected_makes_its_client_wait() -> None:
    told_story = over(story()).client(request(2, {HOT: [900]}, sequence=10)).to_broker().unmuted()
    told_story.relay.take_to_client()
    told_story.client(request(3, {HOT: [900], COLD: [100]}, sequence=10)).muted(0.5)
    told_story.to_broker(request(3, {COLD: [100]}, sequence=10)).broker(response(3, {COLD: {0: (0, 5)}}))
    assert told(told_story) == ({COLD: {0: 0}, HOT: {0: 19}}, 500)
    told_story.at(0.5).unmuted()


def test_a_rejection_comes_at_once_and_mutes_for_a_part_of_the_announced_wait() -> None:
    told_story = over(story(), 5000).client(request(2, {HOT: [4500]}, sequence=10)).to_broker().muted(1.0)
    assert told(told_story) == ({HOT: {0: 19}}, 3500)
    told_story.at(1.0).unmuted()


def test_a_rejection_that_cannot_announce_the_wait_comes_after_the_mute() -> None:
    rejected = old_messages.produce_request(0, 2, "c", -1, {HOT: {0: records(4500)}})
    told_story = over(story(), 5000).client(rejected).to_broker().muted(1.0).to_client().at(1.0).unmuted()
    assert told_story.relay.take_to_client()


def test_requests_that_are_on_their_way_are_rejected_before_the_mute() -> None:
    """Five at once: none of them waits for the mutes of those before it."""
    sent = [request(number, {HOT: [4500]}, sequence=10 * number) for number in range(2, 7)]
    told_story = over(story(), 5000).client(b"".join(sent)).to_broker().muted(1.0)
    assert b"".join(told_story.relay.take_to_client()).count(b"\0\0\0\0\0\x13") == len(sent)
    told_story.at(1.0).unmuted()


def test_a_mute_waits_for_what_fills_the_socket_but_not_longer_than_it_lasts() -> None:
    large = request(2, {HOT: [FULL_READ_BYTES]}, sequence=10)
    told_story = over(story(), 11_000).client(large).unmuted().at(0.4).client(large).unmuted()
    told_story.client(request(3, {HOT: [100]}, sequence=10)).muted(1.4)
    told_story.at(1.5).client(large).unmuted().at(2.4).client(large).unmuted().at(2.5).client(large).muted(
        3.5
    )


def test_what_a_client_has_sent_is_dropped_if_it_hangs_up_while_it_is_muted_for_a_rejection() -> None:
    told_story = over(story(), 5000)
    assert not told_story.relay.relay.status.waits_for_debt
    told_story.client(request(2, {HOT: [4500]}, sequence=10)).muted(1.0)
    assert told_story.relay.relay.status.waits_for_debt
    told_story.at(1.0)
    assert not told_story.relay.relay.status.waits_for_debt


def test_what_a_client_has_sent_is_not_dropped_while_a_quota_of_its_own_mutes_it() -> None:
    told_story = story(quotas={EVERYONE: {"producer_byte_rate": 1000.0}}).client(request(1, {COLD: [5000]}))
    assert told_story.relay.client_muted
    assert not told_story.relay.relay.status.waits_for_debt


def test_later_batches_of_a_producer_wait_until_the_rejected_one_comes_again() -> None:
    told_story = over(story()).client(request(2, {HOT: [300]}, sequence=10)).to_broker()
    told_story.relay.take_to_client()
    told_story.at(1.0).client(request(3, {HOT: [300]}, sequence=20)).to_broker()
    assert told(told_story) == ({HOT: {0: 19}}, 0)
    for number, sequence in ((4, 10), (5, 20), (6, 30)):
        again = request(number, {HOT: [100]}, sequence=sequence)
        told_story.client(again).to_broker(again)


def test_the_client_quota_counts_what_goes_on() -> None:
    quotas = {EVERYONE: {"producer_byte_rate": 100_000.0}}
    told_story = over(story(quotas=quotas))
    buckets = live_buckets(told_story.relay._engine)
    (tokens,) = [present(bucket.tokens) for bucket in buckets if bucket.quota == "producer_byte_rate"]
    before = tokens.measure(told_story._now)
    told_story.client(request(2, {HOT: [300], COLD: [100]}, sequence=10))
    size = len(request(2, {COLD: [100]}, sequence=10)) - LENGTH_SIZE
    assert tokens.measure(told_story._now) == before - size
    told_story.client(request(3, {HOT: [300]}, sequence=10))
    assert tokens.measure(told_story._now) == before - size


def test_rejected_bytes_are_not_counted_as_the_partitions() -> None:
    traffic = Traffic(topic_partitions=True)
    told_story = over(story(traffic=traffic)).client(request(2, {HOT: [300], COLD: [100]}, sequence=10))
    told_story.broker(response(2, {COLD: {0: (0, 5)}}))
    assert {names[0]: count.bytes_in for names, count in traffic.partitions.items()} == {HOT: 1500, COLD: 100}


def test_a_client_that_retries_throttling_is_told_so() -> None:
    told_story = story()
    schema = request_type(18, 3)
    hello = request_frame(schema(client_software_name="apache-kafka-java", client_software_version="4.3.1"))
    told_story.client(hello).to_broker(hello)
    told_story.broker(b"\0\0\0\x0c\0\0\0\x01" + bytes([0, 0, 1, 0, 0, 0, 0, 0]))
    told_story.relay.take_to_client()
    over(told_story).client(request(2, {HOT: [300]}, sequence=10)).to_broker()
    assert told(told_story) == ({HOT: {0: 89}}, 0)


def test_a_producer_without_responses_loses_what_is_over_and_its_connection() -> None:
    told_story = over(story()).client(request(2, {HOT: [300], COLD: [100]}, acks=0, sequence=10)).to_client()
    told_story.to_broker(request(2, {COLD: [100]}, acks=1, sequence=10)).muted(1.0)
    counted = told_story.relay._engine.rejections.topics
    assert [(names, rejected.bytes) for names, rejected in counted.items()] == [
        ((HOT, PRODUCER_BYTE_RATE.name), 300)
    ]
    told_story.fails_at(1.0, PRODUCE_REJECTED, "1 batches were dropped")


def test_without_responses_what_is_not_over_still_waits_for_the_debt_of_its_user() -> None:
    limits = engine({EVERYONE: {"producer_byte_rate": 1000.0}}, resources=REJECTING)
    first, second = (drive(limits, Ports(), Traffic()) for _ in range(2))
    large = request(1, {HOT: [6000]})
    Playbook(first).client(large).to_broker(large)
    paid = (len(large) - LENGTH_SIZE - 1000) / 1000
    told_story = Playbook(second)
    told_story.client(request(2, {HOT: [300], COLD: [100]}, acks=0, sequence=10)).to_broker()
    told_story.at(paid - 0.1).to_broker()
    told_story.at(paid + 0.01).to_broker(request(2, {COLD: [100]}, acks=1, sequence=10))
    told_story.at(paid + 0.9).fails_at(paid + 1.1, PRODUCE_REJECTED, "1 batches were dropped")


def test_a_large_request_is_buffered_until_it_is_whole() -> None:
    first = request(1, {HOT: [2 * MIB], COLD: [2 * MIB]})
    told_story = story(LARGE).client(first[:MIB]).to_broker().client(first[MIB : 3 * MIB]).to_broker()
    told_story.client(first[3 * MIB :]).to_broker(first).unmuted()
    told_story.broker(response(1, {HOT: {0: (0, 1)}, COLD: {0: (0, 1)}}))
    assert told(told_story) == ({HOT: {0: 0}, COLD: {0: 0}}, 0)
    second = request(2, {HOT: [2 * MIB], COLD: [2 * MIB]}, sequence=10)
    for part in parts_of(second, [MIB, 2 * MIB, 4 * MIB]):
        told_story.client(part)
    told_story.to_broker(request(2, {COLD: [2 * MIB]}, sequence=10)).muted(1.0)


def test_a_request_behind_a_large_one_keeps_its_place() -> None:
    first, second = request(1, {COLD: [2 * MIB]}), request(2, {COLD: [100]})
    told_story = story(LARGE).client(first[: 2 * MIB]).to_broker()
    told_story.client(first[2 * MIB :] + second).to_broker(first, second)


def test_other_large_requests_pass_as_they_come() -> None:
    large = opaque(1, body=bytes(2 * MIB))
    told_story = story(LARGE).client(large[:MIB])
    assert told_story.relay.take_to_broker()


def test_a_large_response_is_buffered_for_what_is_added_to_it() -> None:
    told_story = over(story()).client(request(2, {HOT: [300], COLD: [100]}, sequence=10))
    told_story.relay.take_to_broker()
    message = read_frame(response_type(0, VERSION), response(2, {COLD: {0: (0, 5)}}))
    (topic,) = message.responses
    (partition,) = topic.partition_responses
    partition = replace(partition, error_message="x" * (2 * MIB))
    large = response_frame(replace(message, responses=(replace(topic, partition_responses=(partition,)),)), 2)
    told_story.broker(large[:MIB]).to_client().client(request(3, {HOT: [300]}, sequence=10)).to_client()
    told_story.broker(large[MIB:])
    got = b"".join(told_story.relay.take_to_client())
    size = int.from_bytes(got[:4], "big") + 4
    message = read_frame(response_type(0, VERSION), got[:size])
    assert [topic.name for topic in message.responses] == [COLD, HOT]
    assert read_frame(response_type(0, VERSION), got[size:]).responses[0].name == HOT
    told_story.idle()


def test_when_nothing_may_be_rejected_any_more_everything_passes() -> None:
    told_story = over(story())
    told_story.relay._engine.configure(Limits({}), told_story._now)
    second = request(2, {HOT: [3000]}, sequence=99)
    told_story.client(second).to_broker(second).unmuted()
