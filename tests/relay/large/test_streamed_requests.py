"""A producer's request from 128 KiB on is forwarded as it arrives, most of it past the relay."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.quota.limits.config_keys import (
    BYTES_IN_THRESHOLD,
    PRODUCER_BYTE_RATE,
    PRODUCER_BYTE_RATE_ACTION,
    REJECT,
    TOTAL_BYTES_IN_THRESHOLD,
)
from proxy.quota.limits.resources import DEFAULT_RESOURCE, NO_RESOURCES, Resources
from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Traffic
from proxy.relay.requests.streams import FIRST_PART_BYTES, LATER_PART_BYTES, STREAM_BYTES
from proxy.wire.protected_topics import ProtectedTopics
from proxy.wire.topic_names import TopicNames
from tests.support.messages.kio_messages import Ports, parts_of
from tests.support.messages.produce import produce_request, produce_response
from tests.support.quotas.buckets import live_buckets
from tests.support.stories.playbook import EVERYONE, START, Playbook, RelayDriver, drive, engine

KIB = 1 << 10
MIB = 1 << 20
TOPIC = "orders"
IDS = {TOPIC: UUID(int=7)}


class Names(TopicNames):
    """Knows the topic."""

    def look_up(self, topic_id: bytes) -> str:
        return TOPIC if topic_id == IDS[TOPIC].bytes else ""


def producing(sizes: Sequence[int], version: int = 9, number: int = 1, acks: int = -1) -> bytes:
    """A request with so many bytes of records for the partitions from 0 on."""
    return produce_request(number, {TOPIC: sizes}, IDS, version=version, acks=acks)


def limited(rate: int) -> Resources:
    return Resources({TOPIC: {PRODUCER_BYTE_RATE.name: str(rate)}})


def streaming(resources: Resources = NO_RESOURCES, **more: Any) -> Playbook:
    """The story of a connection whose shell can splice."""
    relay = drive(engine({}, resources=resources), Ports(), Traffic(), **more)
    relay.stream_requests()
    return Playbook(relay)


def send_on(relay: RelayDriver, parts: list[bytes]) -> bytes:
    """What the broker gets when the shell lets bytes go past the relay wherever it may."""
    sent = b"".join(relay.take_to_broker())
    for part in parts:
        if 0 < len(part) <= relay.request_forwardable:
            relay.request_forwarded(len(part))
            sent += part
        else:
            relay.receive_from_client(part, START)
            sent += b"".join(relay.take_to_broker())
    return sent


def outcome(parts: list[bytes], responses: list[bytes], rate: int, streams: bool) -> tuple[Any, ...]:
    """What both sides get, what is counted and charged, and when the timer is due, after these requests. The
    client and its topic may use so many bytes per second.
    """
    ledger = UsageLedger()
    traffic = Traffic(topic_partitions=True, usage=ledger)
    limits = engine({EVERYONE: {"producer_byte_rate": float(rate)}}, resources=limited(rate))
    relay = drive(limits, Ports(), traffic)
    if streams:
        relay.stream_requests()
    sent = send_on(relay, parts)
    for response in responses:
        relay.receive_from_broker(response, START)
    got = b"".join(relay.take_to_client())
    partitions = {key: counters.bytes_in for key, counters in traffic.partitions.items()}
    used = [
        (use.topic, use.partition, use.tally.bytes_in) for c in ledger.close_interval() for use in c.take()
    ]
    buckets = [(bucket.quota, bucket.used, bucket.debt(START)) for bucket in live_buckets(limits)]
    return sent, got, traffic.total.bytes_in, partitions, sorted(used), buckets, relay.next_timer


@pytest.mark.parametrize("version", [3, 8, 9, 12])
@settings(max_examples=20)
@given(
    sizes=st.lists(st.integers(0, 300 * KIB), min_size=1, max_size=3),
    cuts=st.lists(st.integers(1, 500 * KIB), max_size=10),
)
def test_a_request_that_streams_changes_and_counts_nothing_else(
    version: int, sizes: list[int], cuts: list[int]
) -> None:
    """Two requests, one behind the other, in parts of any size."""
    frames = producing(sizes, version) + producing(sizes, version, 2)
    parts = parts_of(frames, [cut for cut in cuts if cut < len(frames)])
    responses = [produce_response(number, {TOPIC: sizes}, IDS, version=version) for number in (1, 2)]
    streamed = outcome(parts, responses, 1 << 40, True)
    assert streamed == outcome(parts, responses, 1 << 40, False)
    assert streamed[0] == frames


def test_the_end_of_a_request_is_noticed_although_records_are_its_last_bytes() -> None:
    frame = producing([900 * KIB], version=8)
    story = streaming().client(frame[: 70 * KIB])
    assert story.relay.request_forwardable == len(frame) - 70 * KIB - 1
    assert send_on(story.relay, [frame[70 * KIB : -1], frame[-1:]]) == frame
    assert not story.relay.status.request_unfinished


def test_a_request_that_streams_waits_as_long_as_one_that_is_read_whole() -> None:
    """The quotas charge all of it when its head has come."""
    frame = producing([900 * KIB])
    response = [produce_response(1, {TOPIC: [0]}, IDS, version=9)]
    parts = parts_of(frame, [70 * KIB, 300 * KIB])
    streamed = outcome(parts, response, 500_000, True)
    assert streamed == outcome(parts, response, 500_000, False)
    assert streamed[-1] > START


def test_most_of_a_large_request_goes_past_the_relay() -> None:
    frame = producing([20, 0, 900 * KIB])
    story = streaming().client(frame[: 70 * KIB]).to_broker(frame[: 70 * KIB])
    assert story.relay.request_forwardable >= 829 * KIB


def streams(story: Playbook, part: bytes) -> bool:
    """Whether the broker gets the first part of a request before the rest has come."""
    story.client(part)
    return len(b"".join(story.relay.take_to_broker())) > 0


def test_a_client_first_has_to_send_a_part_and_then_has_credit() -> None:
    """A broker reserves memory for the whole request when it knows its length."""
    frame = producing([900 * KIB])
    story = streaming()
    assert not streams(story, frame[: FIRST_PART_BYTES - 1])
    assert streams(story, frame[FIRST_PART_BYTES - 1 : FIRST_PART_BYTES])
    story.client(frame[FIRST_PART_BYTES:]).to_broker(frame[FIRST_PART_BYTES:])
    assert not streams(story, frame[: LATER_PART_BYTES - 1])
    assert streams(story, frame[LATER_PART_BYTES - 1 : LATER_PART_BYTES])


def test_small_requests_come_whole() -> None:
    for size, expected in ((STREAM_BYTES, False), (STREAM_BYTES + 1, True)):
        frame = producing([size - 100])
        frame = producing([size - 100 - (len(frame) - size)])
        assert len(frame) == size
        assert streams(streaming(), frame[:-1]) == expected


@pytest.mark.parametrize("sizes", [[900 * KIB, 0], [300 * KIB, 300 * KIB]])
def test_a_request_comes_whole_if_its_first_part_lacks_a_size(sizes: list[int]) -> None:
    frame = producing(sizes)
    story = streaming()
    for part in parts_of(frame[:-1], [70 * KIB, 200 * KIB]):
        assert not streams(story, part)
    story.client(frame[-1:]).to_broker(frame)


REJECTING = Resources({TOPIC: {PRODUCER_BYTE_RATE.name: "1000000", PRODUCER_BYTE_RATE_ACTION.name: REJECT}})
THRESHOLDS = Resources(
    {TOPIC: {BYTES_IN_THRESHOLD.name: "1000"}}, {DEFAULT_RESOURCE: {TOTAL_BYTES_IN_THRESHOLD.name: "2000"}}
)


def test_a_request_streams_until_its_broker_is_over_the_threshold() -> None:
    frame = producing([900 * KIB])
    story = streaming(THRESHOLDS)
    assert streams(story, frame[: 70 * KIB])
    story.client(frame[70 * KIB :]).to_broker(frame[70 * KIB :])
    story.at(6.0)
    assert not streams(story, frame[:-1])
    story.client(frame[-1:]).to_broker()
    assert len(b"".join(story.relay.take_to_client())) == 0, "the first request has no response yet"


@pytest.mark.parametrize(
    ("frame", "more"),
    [
        (producing([900 * KIB], acks=0), {}),
        (producing([900 * KIB]), {"resources": REJECTING}),
        (producing([900 * KIB]), {"protected": ProtectedTopics(frozenset([TOPIC]))}),
        (producing([900 * KIB], version=13), {}),
        (produce_request(1, {f"t{at}": [1000] for at in range(200)}, {}, version=9), {}),
    ],
    ids=["acks=0", "a topic rejects", "a protected topic", "an unknown topic id", "many topics"],
)
def test_what_may_end_otherwise_comes_whole(frame: bytes, more: dict[str, Any]) -> None:
    assert not streams(streaming(**more), frame[:-1])


def test_a_known_topic_id_streams() -> None:
    frame = producing([900 * KIB], version=13)
    assert streams(streaming(topic_names=Names()), frame[: 70 * KIB])


def test_nothing_streams_unless_the_shell_says_that_it_can() -> None:
    frame = producing([900 * KIB])
    assert not streams(Playbook(drive(engine({}), Ports(), Traffic())), frame[:-1])


def test_a_topic_gets_back_what_a_client_that_goes_has_not_sent() -> None:
    """A broker appends nothing of a part of a request."""
    story = streaming(limited(10 * MIB)).client(producing([900 * KIB])[: 70 * KIB])
    (bucket,) = live_buckets(story.relay._engine)
    assert bucket.used == 900 * KIB
    story.relay.end()
    assert bucket.used == 0.0
