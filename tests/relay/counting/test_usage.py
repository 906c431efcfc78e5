"""Usage adds up to what Traffic counts of each client, whatever passes and however it ends."""

from collections import Counter
from dataclasses import replace
from typing import Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.quota.limits.resources import NO_RESOURCES, Resources
from proxy.quota.usage import Usage, UsageLedger
from proxy.relay.close_reasons import RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.wire.cursor import NO_PARTITION
from tests.relay.large.test_streams import pass_on
from tests.relay.produce.test_rejecting import COLD, HOT, REJECTING, over, request, response
from tests.support.messages.exchanges import (
    TOPIC,
    api_versions,
    chunks,
    fetch,
    fetch_response,
    fetched,
    opaque,
    produce,
    produced,
    responded,
)
from tests.support.messages.kio_messages import Ports, response_frame
from tests.support.quotas.buckets import live_buckets
from tests.support.stories.playbook import EVERYONE, Playbook, Quotas, drive, engine

MIB = 1 << 20
NODE = 3
PRODUCE, FETCH, API_VERSIONS, OPAQUE = 0, 1, 18, 42

Place = tuple[int, str, int]
"""API key, topic and partition."""


class Counted:
    """A relay whose usage is taken now and then."""

    def __init__(
        self,
        quotas: Quotas | None = None,
        topic_partitions: bool = False,
        resources: Resources = NO_RESOURCES,
    ) -> None:
        self.ledger = UsageLedger()
        self.traffic = Traffic(topic_partitions, self.ledger)
        self.engine = engine(quotas or {}, resources=resources)
        own = frozenset((48,))
        self.relay = drive(self.engine, Ports(), self.traffic, intercepted_api_keys=own, node_id=NODE)
        self.story = Playbook(self.relay)
        self.usages: list[Usage] = []

    def take(self) -> Self:
        """Close the interval."""
        for client in self.ledger.close_interval():
            self.usages.extend(client.take())
        return self

    def by_client(self) -> dict[tuple[str, str], tuple[int, int]]:
        self.take()
        bytes_in: Counter[tuple[str, str]] = Counter()
        bytes_out: Counter[tuple[str, str]] = Counter()
        for usage in self.usages:
            assert usage.node_id == NODE
            bytes_in[usage.user, usage.client_id] += usage.tally.bytes_in
            bytes_out[usage.user, usage.client_id] += usage.tally.bytes_out
        return {key: (bytes_in[key], bytes_out[key]) for key in bytes_in}

    def by_place(self) -> dict[Place, int]:
        self.take()
        counted: Counter[Place] = Counter()
        for usage in self.usages:
            place = usage.api_key, usage.topic, usage.partition
            counted[place] += usage.tally.bytes_in + usage.tally.bytes_out
        return dict(counted)

    def requests(self) -> dict[int, int]:
        self.take()
        counted: Counter[int] = Counter()
        for usage in self.usages:
            counted[usage.api_key] += usage.tally.requests
        return {api_key: count for api_key, count in counted.items() if count}

    def adds_up(self) -> None:
        used = {
            key: (value.bytes_in, value.bytes_out)
            for key, value in self.traffic.clients.items()
            if value.bytes_in or value.bytes_out
        }
        assert self.by_client() == used
        assert self.requests() == {key: count for key, count in enumerate(self.traffic.requests) if count}


def test_everything_is_counted_once() -> None:
    counted = Counted()
    counted.story.client(
        api_versions(1)
        + produce(2, size=500, client_id="one")
        + produce(3, size=900, acks=0, client_id="other")
        + fetch(4, client_id="other")
        + opaque(5, OPAQUE)
    )
    counted.story.broker(produced(2) + fetched(4) + responded(5))
    counted.adds_up()
    places = counted.by_place()
    assert {place[0] for place in places} == {PRODUCE, FETCH, API_VERSIONS, OPAQUE}
    assert all(size > 0 for size in places.values())


def test_records_are_their_partitions() -> None:
    counted = Counted()
    response = fetch_response(4, bytes(700))
    response = response_frame(replace(response, responses=response.responses * 2), 2)
    counted.story.client(produce(1, size=500) + fetch(2, version=4)).broker(produced(1) + response)
    counted.adds_up()
    places = counted.by_place()
    assert places[FETCH, TOPIC, 0] == 1400
    assert places[FETCH, "", NO_PARTITION] == len(fetch(2, version=4)) + len(response) - 1400
    assert 400 < places[PRODUCE, TOPIC, 0] < 500


def test_partitions_of_the_metrics_stay_off() -> None:
    counted = Counted()
    counted.story.client(produce(1)).broker(produced(1))
    assert counted.traffic.partitions == {}


def test_an_intercepted_request_is_counted_with_its_response() -> None:
    counted = Counted()
    counted.story.client(opaque(1, 48)).own(responded(1))
    counted.adds_up()
    assert counted.requests() == {48: 1}


def test_a_large_request_crosses_intervals() -> None:
    counted = Counted()
    first, *more = chunks(produce(1, size=3 * MIB), MIB)
    counted.story.client(first)
    counted.take()
    for chunk in more:
        counted.story.client(chunk)
        counted.take()
    counted.story.broker(produced(1))
    counted.adds_up()
    assert all(usage.tally.bytes_in >= 0 for usage in counted.usages)
    assert counted.by_place()[PRODUCE, TOPIC, 0] > 3 * MIB - 200


@pytest.mark.parametrize("size", [500, 3 * MIB], ids=["small", "cut through"])
def test_rejected_records_are_their_clients_and_no_partitions(size: int) -> None:
    """They came; also when the response comes in another interval than the request."""
    counted = Counted()
    counted.story.client(*chunks(produce(1, size=size), MIB))
    counted.take()
    counted.story.broker(response(1, {TOPIC: {0: (10, -1)}}, 7))
    counted.adds_up()
    assert all(usage.tally.bytes_in >= 0 for usage in counted.usages)
    assert {place[1:] for place in counted.by_place()} == {("", NO_PARTITION)}


def test_records_whose_response_has_not_come_are_their_partitions_at_the_end() -> None:
    counted = Counted()
    counted.story.client(produce(1, size=500))
    counted.take()
    counted.relay.end()
    counted.relay.end()
    counted.adds_up()
    assert 400 < counted.by_place()[PRODUCE, TOPIC, 0] < 500


def test_a_large_response_crosses_intervals() -> None:
    counted = Counted()
    counted.story.client(fetch(1, version=4))
    for chunk in chunks(response_frame(fetch_response(4, bytes(3 * MIB)), 1), MIB):
        counted.story.broker(chunk)
        counted.take()
    counted.adds_up()
    assert all(usage.tally.bytes_out >= 0 for usage in counted.usages)
    assert counted.by_place()[FETCH, TOPIC, 0] == 3 * MIB


@pytest.mark.parametrize("partitions", [False, True])
def test_large_frames_that_end_with_the_connection(partitions: bool) -> None:
    counted = Counted(topic_partitions=partitions)
    counted.story.client(fetch(1, version=4) + produce(2, size=3 * MIB)[: 2 * MIB])
    counted.story.broker(response_frame(fetch_response(4, bytes(3 * MIB)), 1)[:MIB])
    counted.relay.end()
    counted.relay.end()
    counted.adds_up()


def test_a_request_that_ends_the_connection() -> None:
    counted = Counted()
    broken = produce(1, size=200)
    broken = broken[:-60] + b"\xff" * 60
    with pytest.raises(RelayError):
        counted.story.client(broken[:4] + b"\0\0\0\x63" + broken[8:])
    counted.relay.end()
    counted.adds_up()


def test_waits_are_counted_as_the_buckets_do() -> None:
    counted = Counted({EVERYONE: {"producer_byte_rate": 1000, "consumer_byte_rate": 1000}})
    counted.story.client(produce(1, size=3000)).broker(produced(1)).at(5)
    counted.story.client(fetch(2, version=4)).broker(response_frame(fetch_response(4, bytes(2500)), 2)).at(20)
    counted.take()
    buckets = live_buckets(counted.engine)
    assert [bucket.throttled_requests for bucket in buckets] == [1, 1]
    waits = {usage.tally.quota: usage.tally for usage in counted.usages if usage.tally.quota}
    for bucket in buckets:
        tally = waits[bucket.quota]
        assert tally.throttled_requests == bucket.throttled_requests
        assert tally.throttle_seconds == pytest.approx(bucket.throttle_seconds)


def test_what_is_rejected_is_counted_as_in_the_metrics() -> None:
    counted = Counted(resources=REJECTING, topic_partitions=True)
    over(counted.story)
    # A part of the first is rejected, and all of the second.
    counted.story.client(request(2, {COLD: [100], HOT: [300, 300]}, sequence=10))
    counted.story.broker(response(2, {COLD: {0: (0, 5)}, HOT: {1: (0, 6)}}))
    counted.story.client(request(3, {HOT: [200]}, sequence=20))
    counted.relay.end()
    counted.adds_up()
    topics = counted.engine.rejections.topics
    rejected: Counter[tuple[str, int]] = Counter()
    for usage in counted.usages:
        rejected[usage.topic, usage.partition] += usage.tally.rejected_bytes
    assert {key: value for key, value in rejected.items() if value} == {(HOT, 0): 500}
    assert sum(topic.bytes for topic in topics.values()) == 500
    tallies = [usage.tally for usage in counted.usages]
    requests = sum(topic.requests for topic in topics.values())
    assert sum(tally.rejected_requests for tally in tallies) == requests == 2
    buckets = live_buckets(counted.engine)
    assert sum(tally.throttled_requests for tally in tallies) == sum(
        bucket.throttled_requests for bucket in buckets
    )
    assert sum(tally.throttle_seconds for tally in tallies) == pytest.approx(
        sum(bucket.throttle_seconds for bucket in buckets)
    )
    by_topic: Counter[tuple[str, int]] = Counter()
    for (topic, _, partition), sizes in counted.traffic.partitions.items():
        by_topic[topic, partition] += sizes.bytes_in
    used: Counter[tuple[str, int]] = Counter()
    for usage in counted.usages:
        if usage.topic:
            used[usage.topic, usage.partition] += usage.tally.bytes_in
    assert used == by_topic


@pytest.mark.parametrize("cut", [70_000, 200_000])
def test_responses_that_stream_past_the_relay(cut: int) -> None:
    counted = Counted()
    frames = [response_frame(fetch_response(4, bytes(MIB)), number) for number in (1, 2)]
    counted.story.client(fetch(1, version=4) + fetch(2, version=4))
    passed, beside = pass_on(counted.relay, chunks(b"".join(frames), cut))
    assert passed == b"".join(frames)
    assert beside > 0
    counted.adds_up()
    assert counted.by_place()[FETCH, TOPIC, 0] == 2 * MIB


SIZES = st.sampled_from((100, 5000, MIB - 4, MIB + 1, 2 * MIB))
CLIENT_IDS = st.sampled_from(("one", "other", None))


@settings(max_examples=60)
@given(st.data())
def test_any_traffic_adds_up(data: st.DataObject) -> None:
    counted = Counted({EVERYONE: {"producer_byte_rate": 10 * MIB}} if data.draw(st.booleans()) else None)
    requests: list[bytes] = []
    responses: list[bytes] = []
    for number in range(data.draw(st.integers(1, 5))):
        client_id = data.draw(CLIENT_IDS)
        if data.draw(st.booleans()):
            requests.append(produce(number, data.draw(SIZES), client_id=client_id))
            responses.append(produced(number))
        else:
            requests.append(fetch(number, version=4, client_id=client_id))
            responses.append(response_frame(fetch_response(4, bytes(data.draw(SIZES))), number))
    step = data.draw(st.sampled_from((1000, 70_000, MIB)))
    for chunk in chunks(b"".join(requests), step * 8):
        counted.story.client(chunk)
        counted.take()
    counted.story.at(100)
    sent = b"".join(responses)
    sent = sent[: data.draw(st.integers(0, len(sent)))]
    for chunk in chunks(sent, step * 8):
        counted.story.broker(chunk)
        counted.take()
    counted.relay.end()
    counted.adds_up()
    assert all(usage.tally.bytes_in >= 0 and usage.tally.bytes_out >= 0 for usage in counted.usages)
