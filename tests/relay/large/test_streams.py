"""A consumer's response from 64 KiB on is forwarded as it arrives, most of it past the relay."""

from dataclasses import replace
from datetime import timedelta
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.quota.limits.config_keys import CONSUMER_BYTE_RATE
from proxy.quota.limits.resources import Resources
from proxy.relay.counters.traffic import Traffic
from proxy.relay.responses.responses import STREAM_BYTES
from proxy.wire.cursor import NO_ID
from tests.support.messages.exchanges import (
    TOPIC,
    fetch,
    fetch_response,
    fetched,
    fetched_records,
    milliseconds,
    opaque,
    responded,
)
from tests.support.messages.kio_messages import Ports, parts_of, read_frame, response_frame, response_type
from tests.support.messages.large_responses import large_fetch_response
from tests.support.messages.old_messages import fetch_request as old_fetch
from tests.support.messages.old_messages import fetch_response as old_fetched
from tests.support.quotas.buckets import live_buckets
from tests.support.stories.playbook import EVERYONE, START, Playbook, RelayDriver, drive, engine, new_relay

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


def counted(frame: bytes, cuts: list[int], version: int) -> tuple[dict[tuple[str, bytes, int], int], bytes]:
    """The bytes of each partition, and what the client gets of a response in these parts."""
    traffic = Traffic(topic_partitions=True)
    story = Playbook(new_relay(traffic=traffic)).client(fetch(1, version=version))
    passed, _ = pass_on(story.relay, parts_of(frame, cuts))
    return {key: counters.bytes_out for key, counters in traffic.partitions.items()}, passed


@pytest.mark.parametrize("version", [4, 11, 12])
@settings(max_examples=20)
@given(
    sizes=st.lists(st.integers(0, 300 * KIB), min_size=1, max_size=4),
    cuts=st.lists(st.integers(1, 500 * KIB), max_size=8),
)
def test_partitions_count_the_same_however_a_response_comes(
    version: int, sizes: list[int], cuts: list[int]
) -> None:
    frame = fetched_records(version, [bytes(size) for size in sizes])
    in_parts = counted(frame, [cut for cut in cuts if cut < len(frame)], version)
    assert in_parts == counted(frame, [], version)
    assert in_parts == ({(TOPIC, NO_ID, at): size for at, size in enumerate(sizes) if size > 0}, frame)


@pytest.mark.parametrize("sizes", [[500 * KIB], [20, 0, 500 * KIB], [500 * KIB, 0]])
def test_if_partitions_count_a_response_streams_when_all_sizes_have_come(sizes: list[int]) -> None:
    frame = fetched_records(12, [bytes(size) for size in sizes])
    streams = sizes[-1] > 0
    story = Playbook(new_relay(traffic=Traffic(topic_partitions=True))).client(fetch(1, version=12))
    story.broker(frame[: 300 * KIB]).to_client(frame[: 300 * KIB] if streams else b"")
    assert (story.relay.forwardable > 0) == streams
    story.broker(frame[300 * KIB :]).to_client(frame[300 * KIB :] if streams else frame).idle()


def consuming(cuts: list[int]) -> tuple[list[bytes], float]:
    """What a client gets of six responses of 200 KB in these parts, under a topic's limit of 1 MiB/s, and for
    how long it is muted then.
    """
    limits = engine({}, resources=Resources({TOPIC: {CONSUMER_BYTE_RATE.name: str(MIB)}}))
    story = Playbook(drive(limits, Ports(), Traffic()))
    got = []
    for number in range(6):
        story.client(fetch(number, max_bytes=200_000, version=12))
        frame = fetched(number, 200_000, version=12)
        got.append(pass_on(story.relay, parts_of(frame, cuts))[0])
    return got, story.relay.next_timer - START


def test_a_response_that_streams_announces_the_wait_for_its_topic() -> None:
    """Its partition is charged when its head has come, as if all of it had."""
    streamed, whole = consuming([5 * KIB, 100 * KIB]), consuming([])
    assert streamed == whole
    response = read_frame(response_type(1, 12), streamed[0][-1])
    assert timedelta(0) < response.throttle_time == milliseconds(ceil(streamed[1] * 1000))


def withheld(cuts: list[int]) -> bytes:
    """What a client gets in place of a response in these parts, because its topic is far over its limit."""
    limits = engine({}, resources=Resources({TOPIC: {CONSUMER_BYTE_RATE.name: str(MIB)}}))
    story = Playbook(drive(limits, Ports(), Traffic()))
    story.client(fetch(1, max_bytes=200_000, version=12)).broker(fetched(1, 200_000, version=12))
    story.client(fetch(2, max_bytes=200_000, version=12)).relay.take_to_client()
    (bucket,) = live_buckets(limits)
    bucket.record(5.0 * MIB, START)
    frame = fetched(2, 200_000, version=12)
    passed, _ = pass_on(story.relay, parts_of(frame, cuts))
    assert story.idle().relay.client_muted
    return passed


def test_a_response_of_a_topic_over_its_limit_is_withheld_before_it_streams() -> None:
    assert withheld([5 * KIB, 100 * KIB]) == withheld([])
    assert len(withheld([5 * KIB])) < KIB


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
