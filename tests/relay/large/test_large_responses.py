"""Responses over 1 MiB are cut through: they pass as they come, announce their wait, and have no address."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.quota import Quota
from proxy.quota.verdict import Verdict
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR
from proxy.relay.counters.traffic import Traffic
from proxy.relay.requests.unsupported_version import unsupported_api_versions
from proxy.wire.addresses import Address
from proxy.wire.views import RequestView
from tests.support.messages.exchanges import (
    TOPIC,
    api_versions,
    chunks,
    fetch,
    fetch_response,
    fetched,
    milliseconds,
    opaque,
    responded,
)
from tests.support.messages.kio_messages import (
    BROKER_HOST,
    Ports,
    framed,
    is_without_endpoints,
    parts_of,
    read_frame,
    response_frame,
    through_proxy,
)
from tests.support.messages.large_responses import (
    LARGE,
    describe_cluster,
    find_coordinator,
    large_fetch_response,
    large_produce_response,
    large_share_response,
    metadata,
)
from tests.support.messages.old_messages import fetch_request as old_fetch
from tests.support.messages.old_messages import fetch_response as old_fetched
from tests.support.stories.playbook import EVERYONE, Playbook, drive, new_relay

MIB = 1 << 20
SLOW = {EVERYONE: {"producer_byte_rate": float(MIB), "consumer_byte_rate": float(MIB)}}
HOST = BROKER_HOST.encode()


def test_a_large_response_passes_as_it_comes() -> None:
    response = fetched(1, size=3 * MIB)
    story = (
        Playbook(new_relay()).client(fetch(1)).to_broker(fetch(1)).broker(response[:4095]).to_client().busy()
    )
    story.broker(response[4095:4096]).to_client(response[:4096]).busy()
    story.broker(response[4096:MIB]).to_client(response[4096:MIB]).busy()
    story.broker(response[MIB:]).to_client(response[MIB:]).idle()


def test_responses_around_a_large_one_keep_their_order() -> None:
    large = fetched(2, size=2 * MIB)
    story = Playbook(new_relay()).client(opaque(1) + fetch(2) + opaque(3))
    story.broker(*chunks(responded(1) + large + responded(3))).to_client(
        responded(1), large, responded(3)
    ).idle()


def test_a_large_response_to_an_opaque_request() -> None:
    large = responded(1, bytes(2 * MIB))
    story = (
        Playbook(new_relay())
        .client(opaque(1) + opaque(2))
        .broker(large[:5000])
        .to_client(large[:5000])
        .busy()
    )
    story.broker(large[5000:] + responded(2)).to_client(large[5000:], responded(2)).idle()


def test_a_local_response_waits_for_the_end_of_a_large_one() -> None:
    large = fetched(1, size=2 * MIB)
    for request, response in ((fetch(1), large), (opaque(1), responded(1, bytes(2 * MIB)))):
        story = Playbook(new_relay()).client(request).broker(response[:MIB]).to_client(response[:MIB])
        story.client(api_versions(2)).to_client().busy()
        story.broker(response[MIB:]).to_client(response[MIB:], unsupported_api_versions(2, 0, 4)).idle()


@pytest.mark.parametrize("version", [4, 11, 12, 15, 16, 18])
def test_a_large_response_announces_its_wait_and_mutes_at_once(version: int) -> None:
    response, patched = (fetched(1, size=3 * MIB, throttle_ms=ms, version=version) for ms in (0, 2000))
    story = Playbook(new_relay(SLOW)).client(fetch(1, max_bytes=9, version=version))
    story.broker(response[:5000]).to_client(patched[:5000]).muted(2.0)
    story.broker(*chunks(response[5000:])).to_client(patched[5000:]).muted(2.0)
    story.at(2.0).unmuted().idle()


class Waiting(Quota):
    """Every request waits, as no API but Produce and the two Fetches does as yet."""

    def __init__(self, seconds: float) -> None:
        super().__init__((0, 1, 10, 60, 78, 79))
        self.seconds = seconds

    def admit(self, request: RequestView, who: Identity, now: float) -> Verdict:
        return Verdict(self.seconds)


def waiting(seconds: float) -> Playbook:
    engine = QuotaEngine([Waiting(seconds)])
    return Playbook(drive(engine, Ports(), Traffic()))


def asked(response: Any) -> bytes:
    """A request to which this is the response."""
    key, version = response.__api_key__, response.__version__
    body = {0: b"\0" + b"\0" + b"\0\1" + bytes(5), 1: b"\0" + bytes(16), 10: b"\0" + b"\0\1\0"}
    return opaque(1, key, version, body.get(key, b"\0"))


def ids(response: Any) -> str:
    return f"{response.__api_key__}v{response.__version__}"


@pytest.mark.parametrize("throttle_ms", [0, 1500])
@pytest.mark.parametrize("response", LARGE, ids=ids)
def test_endpoints_at_the_end_of_a_large_response_are_taken_out(response: Any, throttle_ms: int) -> None:
    """Its length is on its way by then: they are a hint, and clients do without."""
    frame = response_frame(response)
    for size in (5000, 65_536, len(frame) - 100, len(frame) - 50, len(frame) - 1):
        story = waiting(throttle_ms / 1000).client(asked(response)).broker(*chunks(frame, size)).idle()
        passed = b"".join(story.relay.take_to_client())
        assert len(passed) == len(frame)
        assert HOST not in passed
        assert is_without_endpoints(passed, replace(response, throttle_time=milliseconds(throttle_ms)))


@settings(max_examples=30)
@given(
    st.sampled_from(LARGE),
    st.lists(st.integers(1, 300) | st.integers(1, MIB), max_size=8),
    st.integers(1, 60),
)
def test_a_large_response_in_parts_of_any_size(response: Any, sizes: list[int], last: int) -> None:
    """Small parts at both ends, where there is something to read, and large ones between."""
    frame = response_frame(response)
    cuts = [sum(sizes[:count]) for count in range(1, len(sizes) + 1)]
    cuts += [len(frame) - last * count for count in range(1, 5)]
    parts = parts_of(frame, [cut for cut in cuts if cut < len(frame)])
    passed = waiting(1.5).client(asked(response)).broker(*parts).idle().relay.take_to_client()
    told = replace(response, throttle_time=milliseconds(1500))
    assert is_without_endpoints(b"".join(passed), told)


@pytest.mark.parametrize("response", LARGE, ids=ids)
def test_endpoints_of_a_large_response_that_is_there_at_once_are_rewritten(response: Any) -> None:
    story = waiting(1.5).client(asked(response)).broker(response_frame(response)).idle()
    passed = b"".join(story.relay.take_to_client())
    wanted = replace(through_proxy(response), throttle_time=milliseconds(1500))
    assert read_frame(type(response), passed) == wanted


def test_a_large_head_announces_its_wait_as_well() -> None:
    """ShareFetch's error_message stands in the head, and so the head is not there with the first part."""
    response = replace(large_share_response(78, 1), error_message="x" * 2 * MIB)
    frame = response_frame(response)
    story = waiting(1.5).client(asked(response)).broker(*chunks(frame))
    passed = b"".join(story.relay.take_to_client())
    assert is_without_endpoints(passed, replace(response, throttle_time=milliseconds(1500)))


def test_the_brokers_own_wait_counts_though_it_came_in_two_parts() -> None:
    """In a Produce response it stands behind all the rest."""
    response = replace(large_produce_response(13), throttle_time=milliseconds(9000))
    frame = response_frame(response)
    field = frame.rindex((9000).to_bytes(4, "big"))
    for cut in range(field, field + 6):
        story = waiting(1.5).client(asked(response)).broker(frame[:cut], frame[cut:]).idle()
        assert is_without_endpoints(b"".join(story.relay.take_to_client()), response)


@pytest.mark.parametrize("response", [metadata(1200), find_coordinator(), describe_cluster()], ids=ids)
@pytest.mark.parametrize("size", [4096, 65_536, MIB])
def test_addresses_at_the_front_of_a_large_response_are_rewritten(response: Any, size: int) -> None:
    throttle_ms = 0 if response.__api_key__ == 3 else 1500
    story = waiting(1.5).client(asked(response)).broker(*chunks(response_frame(response), size)).idle()
    passed = b"".join(story.relay.take_to_client())
    wanted = replace(through_proxy(response), throttle_time=milliseconds(throttle_ms))
    assert read_frame(type(response), passed) == wanted


class CountedPorts(Ports):
    """Counts how often an address is looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def find(self, node_id: int, host: str, port: int) -> Address:
        self.asked += 1
        return super().find(node_id, host, port)


def test_the_coordinators_of_a_large_response_are_read_once_however_it_comes() -> None:
    message = find_coordinator()
    one = replace(message.coordinators[0], error_message="e" * 1000)
    many = tuple(replace(one, node_id=type(one.node_id)(number)) for number in range(1500))
    frame = response_frame(replace(message, coordinators=many))
    ports = CountedPorts()
    story = Playbook(drive(QuotaEngine([]), ports, Traffic())).client(asked(message))
    story.broker(*chunks(frame, 65_536)).idle()
    assert ports.asked == len(many)
    assert HOST not in b"".join(story.relay.take_to_client())


def test_the_topics_of_a_large_metadata_response_pass_as_they_come() -> None:
    frame = response_frame(metadata(1200))
    story = Playbook(new_relay()).client(opaque(1, 3, 12, b"\0")).broker(frame[:50_000])
    passed = b"".join(story.relay.take_to_client())
    growth = len(passed) - 50_000
    assert int.from_bytes(passed[:4], "big") == len(frame) - 4 + growth
    story.broker(frame[50_000:60_000]).to_client(frame[50_000:60_000])
    story.broker(frame[60_000:]).to_client(frame[60_000:]).idle()


def test_a_large_response_without_a_field_for_the_wait_is_delayed() -> None:
    request, response = old_fetch(0, 1, {TOPIC: {0: 1}}), old_fetched(0, 1, {TOPIC: {0: bytes(2 * MIB)}})
    wait = (len(response) - 4 - MIB) / MIB
    story = Playbook(new_relay(SLOW)).client(request + opaque(2)).broker(*chunks(response + responded(2)))
    story.to_client().muted(wait).busy()
    story.at(wait).to_client(response, responded(2)).idle()


def test_records_of_a_large_response_are_counted_by_partition() -> None:
    traffic = Traffic(topic_partitions=True)
    response = fetch_response(18, bytes(MIB))
    response = replace(response, responses=response.responses * 3)
    story = Playbook(new_relay(traffic=traffic)).client(fetch(1, version=18))
    story.broker(*chunks(response_frame(response))).to_client(response_frame(response))
    assert [counters.bytes_out for counters in traffic.partitions.values()] == [3 * MIB]


def test_a_large_response_that_ends_too_early() -> None:
    frame = response_frame(large_fetch_response(18))
    cut = framed(frame[4 : 2 * MIB])
    story = Playbook(new_relay()).client(fetch(1, version=18)).broker(cut[:MIB])
    story.broker_fails(cut[MIB:], reason=BROKER_PROTOCOL_ERROR, says="bytes of records")
