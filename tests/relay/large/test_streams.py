"""A consumer's response from 64 KiB on is forwarded as it arrives, most of it past the relay."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.relay.counters.traffic import Traffic
from proxy.relay.responses.responses import STREAM_BYTES
from tests.support.messages.exchanges import TOPIC, fetch, fetch_response, fetched, opaque, responded
from tests.support.messages.kio_messages import parts_of, response_frame
from tests.support.messages.large_responses import large_fetch_response
from tests.support.messages.old_messages import fetch_request as old_fetch
from tests.support.messages.old_messages import fetch_response as old_fetched
from tests.support.stories.playbook import EVERYONE, Playbook, RelayDriver, new_relay

MIB = 1 << 20
KIB = 1 << 10


def pass_on(relay: RelayDriver, parts: list[bytes]) -> tuple[bytes, int]:
    """What the client gets when the shell lets bytes go past the relay wherever it may; and how many did."""
    passed, beside = b"".join(relay.take_to_client()), 0
    for part in parts:
        if 0 < len(part) <= relay.forwardable:
            relay.forwarded(len(part))
            passed += part
            beside += len(part)
        else:
            relay.receive_from_broker(part, 1000.0)
            passed += b"".join(relay.take_to_client())
    return passed, beside


@pytest.mark.parametrize("version", [4, 7, 11, 12, 15, 16, 18])
@settings(max_examples=20)
@given(
    sizes=st.lists(st.integers(0, 300 * KIB), min_size=1, max_size=5),
    cuts=st.lists(st.integers(1, 500 * KIB), max_size=12),
)
def test_what_goes_past_the_relay_changes_nothing(version: int, sizes: list[int], cuts: list[int]) -> None:
    """Two responses, one behind the other, of several partitions each, in parts of any size."""
    response = fetch_response(version, b"")
    topic = response.responses[0]
    partitions = tuple(
        replace(topic.partitions[0], records=bytes([at]) * size) for at, size in enumerate(sizes)
    )
    response = replace(response, responses=(replace(topic, partitions=partitions),) * 2)
    frames = response_frame(response, 1) + response_frame(response, 2)
    parts = parts_of(frames, [cut for cut in cuts if cut < len(frames)])
    requests = fetch(1, version=version) + fetch(2, version=version)
    traffic, other = Traffic(), Traffic()
    beside = Playbook(new_relay(traffic=traffic)).client(requests)
    through = Playbook(new_relay(traffic=other)).client(requests).broker(*parts)
    assert pass_on(beside.relay, parts)[0] == b"".join(through.relay.take_to_client())
    assert beside.relay.status.idle
    assert traffic.total.bytes_out == other.total.bytes_out == len(frames)


@pytest.mark.parametrize("version", [11, 12, 18])
def test_most_of_a_large_response_goes_past_the_relay(version: int) -> None:
    frame = response_frame(fetch_response(version, bytes(MIB)))
    parts = parts_of(frame, list(range(100 * KIB, len(frame), 100 * KIB)))
    story = Playbook(new_relay()).client(fetch(1, version=version))
    passed, beside = pass_on(story.relay, parts)
    assert passed == frame
    assert beside >= 900 * KIB


def test_endpoints_at_the_end_of_a_stream_are_taken_out() -> None:
    """Its length is on its way by then."""
    frame = response_frame(large_fetch_response(18))
    parts = parts_of(frame, list(range(100 * KIB, len(frame), 100 * KIB)))
    through = Playbook(new_relay()).client(fetch(1, version=18)).broker(*parts)
    passed, beside = pass_on(Playbook(new_relay()).client(fetch(1, version=18)).relay, parts)
    assert beside > 0
    assert passed == b"".join(through.relay.take_to_client())


def test_a_response_streams_from_64_kib_on() -> None:
    for size, streams in ((STREAM_BYTES, False), (STREAM_BYTES + 1, True)):
        frame = fetched(1, size - 4)
        assert len(frame) == size
        story = Playbook(new_relay()).client(fetch(1)).broker(frame[:-1])
        assert (b"".join(story.relay.take_to_client()) != b"") == streams


def test_who_wants_to_see_the_partitions_gets_the_response_whole() -> None:
    frame = response_frame(fetch_response(12, bytes(500 * KIB)))
    story = Playbook(new_relay(traffic=Traffic(topic_partitions=True))).client(fetch(1, version=12))
    assert story.broker(frame[: 300 * KIB]).to_client().relay.forwardable == 0
    story.broker(frame[300 * KIB :]).to_client(frame)


def test_a_bounded_response_comes_whole_so_that_its_batches_can_be_cut() -> None:
    slow = new_relay({EVERYONE: {"consumer_byte_rate": MIB}})
    frame = fetched(1, 500 * KIB)
    story = Playbook(slow).client(fetch(1)).broker(frame[: 300 * KIB]).to_client()
    assert story.relay.forwardable == 0


def test_other_responses_come_whole() -> None:
    frame = responded(1, bytes(500 * KIB))
    story = Playbook(new_relay()).client(opaque(1)).broker(frame[: 300 * KIB]).to_client()
    assert story.relay.forwardable == 0


def test_nothing_overtakes_a_delayed_response() -> None:
    """An old client's response waits, so what comes after it does as well."""
    slow = new_relay({EVERYONE: {"consumer_byte_rate": MIB}})
    request, frame = old_fetch(0, 1, {TOPIC: {0: 1}}), old_fetched(0, 1, {TOPIC: {0: bytes(3 * MIB)}})
    story = Playbook(slow).client(request).broker(frame[:MIB]).to_client()
    assert story.relay.forwardable == 0
