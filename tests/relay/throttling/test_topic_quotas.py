"""Quotas of topics' partitions: producers and consumers wait, by record bytes, as client quotas make them."""

import uuid
from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.quota.limits.config_keys import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, TOPIC_PRODUCER_BYTE_RATE
from proxy.quota.limits.enforcement import PACE, WINDOW
from proxy.quota.limits.resources import DEFAULT_RESOURCE, Resources
from proxy.relay.counters.traffic import Traffic
from proxy.wire.cursor import NO_ID
from proxy.wire.topic_names import TopicNames
from tests.support.messages.exchanges import (
    TOPIC,
    fetch,
    fetch_response,
    fetched,
    fetched_records,
    produce,
    produced,
    record_batch,
)
from tests.support.messages.kio_messages import (
    Ports,
    read_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.support.present import present
from tests.support.quotas.buckets import live_buckets
from tests.support.stories.playbook import EVERYONE, START, Playbook, Quotas, drive, engine, new_relay

MIB = 1 << 20
IN, OUT = PRODUCER_BYTE_RATE.name, CONSUMER_BYTE_RATE.name
THOUSAND = Resources({TOPIC: {IN: "1000", OUT: "1000"}})
PRODUCERS_THOUSAND = Resources({TOPIC: {IN: "1000"}})
TOPIC_ID = uuid.UUID(int=7)


class Names(TopicNames):
    """Knows the topic's id from when the test says so."""

    known = False

    def look_up(self, topic_id: bytes) -> str:
        return TOPIC if self.known and topic_id == TOPIC_ID.bytes else ""


def story(
    resources: Resources = THOUSAND,
    quotas: Quotas | None = None,
    traffic: Traffic | None = None,
    topic_names: TopicNames | None = None,
) -> Playbook:
    return Playbook(new_relay(quotas, traffic, resources=resources, topic_names=topic_names))


def producing(sizes: list[int], version: int = 9, correlation_id: int = 1, topic: str = TOPIC) -> bytes:
    """A request with so many bytes of records for the partitions from 0 on."""
    template = produce(correlation_id, version=min(version, 12), size=200)
    request = read_frame(request_type(0, min(version, 12)), template)
    partition = request.topic_data[0].partition_data[0]
    partitions = tuple(
        replace(partition, index=index, records=bytes(size)) for index, size in enumerate(sizes)
    )
    if version < 13:
        data = replace(request.topic_data[0], name=topic, partition_data=partitions)
        return request_frame(replace(request, topic_data=(data,)), correlation_id)
    schema = request_type(0, version)
    of = schema.__annotations__["topic_data"].__args__[0]
    data = of.__annotations__["partition_data"].__args__[0]
    partitions = tuple(data(index=each.index, records=each.records) for each in partitions)
    topics = (of(topic_id=TOPIC_ID, partition_data=partitions),)
    return request_frame(schema(acks=1, timeout=request.timeout, topic_data=topics), correlation_id)


def test_the_worst_partition_of_a_request_makes_its_client_wait() -> None:
    request = producing([500, 3500, 1000])
    told = story().client(request).to_broker(request).muted(2.5)
    told.broker(produced(1, version=9)).to_client(produced(1, 2500, version=9)).at(2.5).unmuted()


def test_all_partitions_of_a_topic_share_the_limit_of_the_topic() -> None:
    resources = Resources({TOPIC: {TOPIC_PRODUCER_BYTE_RATE.name: "1000"}})
    request = producing([500, 3500, 1000])
    told = story(resources).client(request).to_broker(request).muted(4.0)
    told.broker(produced(1, version=9)).to_client(produced(1, 4000, version=9)).at(4.0).unmuted()


def test_the_longer_wait_of_partition_and_client_counts() -> None:
    request = producing([2000])
    for rate, wait in ((500.0, (len(request) - 4 - 500) / 500), (5000.0, 1.0)):
        story(quotas={EVERYONE: {"producer_byte_rate": rate}}).client(request).to_broker(request).muted(wait)


def test_other_topics_pass_and_nothing_is_counted_that_nobody_asked_for() -> None:
    traffic = Traffic()
    request = producing([50_000])
    told = story(Resources({"another": {IN: "1000", OUT: "1000"}}), traffic=traffic)
    told.client(request).to_broker(request).unmuted().broker(produced(1, version=9))
    told.to_client(produced(1, version=9))
    assert traffic.partitions == {}


def test_a_topic_named_by_id_is_limited_as_soon_as_its_name_is_known() -> None:
    names = Names()
    request = producing([2000], version=13)
    told = story(topic_names=names).client(request).to_broker(request).unmuted()
    names.known = True
    told.client(request).to_broker(request).muted(1.0)


def test_partitions_are_counted_by_name_once_it_is_known() -> None:
    names, traffic = Names(), Traffic(topic_partitions=True)
    names.known = True
    story(topic_names=names, traffic=traffic).client(producing([2000], version=13)).relay.end()
    assert list(traffic.partitions) == [(TOPIC, NO_ID, 0)]


def test_a_consumer_waits_for_the_partitions_that_its_response_brought() -> None:
    response = fetched_records(11, [record_batch(3000), record_batch(500)])
    told = story().client(fetch(1, max_bytes=200)).to_broker(fetch(1, max_bytes=200))
    told.broker(response).muted(2.0)
    message = read_frame(response_type(1, 11), b"".join(told.relay.take_to_client()))
    assert message.throttle_time.total_seconds() == 2.0


def test_what_a_response_may_bring_is_bounded_by_the_partitions_before() -> None:
    told = story().client(fetch(1)).to_broker(fetch(1, max_bytes=250))
    told.broker(fetched_records(11, [record_batch(600)])).unmuted()
    told.relay.take_to_client()
    told.client(fetch(2)).to_broker(fetch(2, max_bytes=400))


def test_a_large_request_is_charged_as_it_passes() -> None:
    traffic = Traffic()
    request = producing([MIB // 2] * 5)
    told = story(Resources({TOPIC: {IN: str(MIB // 4)}}), traffic=traffic)
    told.client(request[: MIB + MIB // 4]).timer(1.0)
    told.at(0.5).client(request[MIB + MIB // 4 : 2 * MIB]).timer(1.5)
    told.client(request[2 * MIB :]).to_broker(request).muted(1.5)
    told.broker(produced(1, version=9)).to_client(produced(1, 1000, version=9))
    buckets = live_buckets(told.relay._engine)
    assert sorted(bucket.partition for bucket in buckets) == [0, 1, 2, 3, 4]
    assert sum(bucket.throttled_requests for bucket in buckets) == 1


def test_a_large_response_is_charged_as_it_passes() -> None:
    message = fetch_response(11, record_batch(2 * MIB))
    (topic,) = message.responses
    second = replace(topic.partitions[0], partition_index=1, records=record_batch(MIB))
    topic = replace(topic, partitions=(*topic.partitions, second))
    response = response_frame(replace(message, responses=(topic,)))
    told = story(Resources({TOPIC: {OUT: str(MIB)}})).client(fetch(1, max_bytes=10))
    told.to_broker(fetch(1, max_bytes=10))
    told.broker(response[: MIB + 5000]).unmuted().broker(response[MIB + 5000 : -MIB // 2]).muted(1.0)
    told.broker(response[-MIB // 2 :]).to_client(response).muted(1.0)
    buckets = live_buckets(told.relay._engine)
    assert {bucket.partition: present(bucket.tokens).measure(START) for bucket in buckets} == {
        0: -MIB,
        1: 0.0,
    }


def test_without_a_limit_responses_pass() -> None:
    told = story(Resources({"another": {OUT: "1000"}})).client(fetch(1, max_bytes=10))
    told.broker(fetched(1, size=5000)).to_client(fetched(1, size=5000)).unmuted()


def test_a_topic_that_is_named_like_an_internal_one_has_the_default_limit() -> None:
    everywhere = Resources({DEFAULT_RESOURCE: {IN: "1000"}}, proxy_topics=frozenset(["__quota_proxy_usage"]))
    for topic in ("__quota_proxy_mine", "__consumer_offsets2"):
        request = producing([3500], topic=topic)
        story(everywhere).client(request).to_broker(request).muted(2.5)
    for topic in ("__quota_proxy_usage", "__consumer_offsets"):
        request = producing([3500], topic=topic)
        story(everywhere).client(request).to_broker(request).unmuted()


def rejected(error_code: ErrorCode) -> bytes:
    """A response with this error."""
    message = read_frame(response_type(0, 9), produced(1, version=9))
    topic = message.responses[0]
    partition = replace(topic.partition_responses[0], error_code=error_code)
    topic = replace(topic, partition_responses=(partition,))
    return response_frame(replace(message, responses=(topic,)), 1)


@pytest.mark.parametrize(
    "error_code",
    [
        ErrorCode.topic_authorization_failed,
        ErrorCode.unknown_server_error,  # for a batch that states 2^31 - 1 bytes
        ErrorCode.corrupt_message,
        ErrorCode.invalid_record,
        ErrorCode.message_too_large,
        ErrorCode.not_leader_or_follower,
        ErrorCode.out_of_order_sequence_number,
    ],
)
def test_what_the_broker_does_not_append_leaves_the_limit_to_others(error_code: ErrorCode) -> None:
    limits = engine({}, resources=THOUSAND)
    mallory, alice = (drive(limits, Ports(), Traffic(), principal=name) for name in ("mallory", "alice"))
    response = rejected(error_code)
    first = Playbook(mallory).client(producing([50_000])).to_broker(producing([50_000]))
    first.broker(response)
    story = Playbook(alice).client(producing([900])).to_broker(producing([900]))
    story.broker(APPENDED).to_client(APPENDED).unmuted()


LARGE = producing([500_000])
LARGER = producing([2 << 20])
SMALL = producing([900])
TINY = producing([50])
APPENDED = produced(1, version=9)
DENIED = rejected(ErrorCode.topic_authorization_failed)


def connected(limits: QuotaEngine, name: str) -> Playbook:
    return Playbook(drive(limits, Ports(), Traffic(), principal=name))


def writer(limits: QuotaEngine, name: str) -> Playbook:
    """A connection of a user who has written to the topic."""
    return connected(limits, name).client(TINY).to_broker(TINY).broker(APPENDED).to_client(APPENDED).unmuted()


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
@pytest.mark.parametrize("large", [LARGE, LARGER])
@pytest.mark.parametrize("fails_first", [True, False])
def test_requests_that_may_be_rejected_let_nobody_wait(
    algorithm: str, large: bytes, fails_first: bool
) -> None:
    """Connections of users without the right to write, whose requests are in flight for as long as they
    like.
    """
    limits = engine({}, algorithm, resources=THOUSAND)
    alice = writer(limits, "alice")
    attackers = []
    for number in range(8):
        if fails_first:
            connected(limits, f"mallory-{number}").client(TINY).broker(DENIED)
        attackers.append(connected(limits, f"mallory-{number}").client(large).to_broker(large))
        # Further requests wait for the user's own, on this connection and on others.
        attackers[-1].client(large).to_broker()
        connected(limits, f"mallory-{number}").client(large).to_broker()
    alice.client(SMALL).to_broker(SMALL).unmuted()
    alice.broker(APPENDED).to_client(APPENDED).unmuted()
    new = connected(limits, "bob").client(TINY).to_broker(TINY)
    new.broker(APPENDED).to_client(APPENDED).unmuted()
    for each in attackers:
        each.broker(DENIED)
    # What has been taken back was not charged, so the limit is as before.
    assert live_buckets(limits)[0].used == 50 + 900 + 50


@pytest.mark.parametrize("action", ["throttle", "reject"])
def test_a_writer_s_first_records_are_limited_before_they_are_charged(action: str) -> None:
    """A client that does not read its responses gets no more on credit."""
    limits = engine({}, resources=Resources({TOPIC: {IN: "1000", f"{IN}.action": action}}))
    first = connected(limits, "alice").client(LARGE + LARGE).to_broker(LARGE)
    others = [connected(limits, "alice").client(LARGE).to_broker() for _ in range(3)]
    for each in [first, *others]:
        each.at(120.0).to_broker()
    assert live_buckets(limits)[0].used == 0


@pytest.mark.parametrize("large", [producing([500]), LARGER])
def test_records_that_may_be_rejected_do_not_wait_at_the_broker(large: bytes) -> None:
    """A broker does not read them while a Fetch in front of them waits for records."""
    limits = engine({}, resources=PRODUCERS_THOUSAND)
    long_poll = fetch(2)
    known = writer(limits, "bob")
    story = connected(limits, "alice").client(long_poll + large + TINY).to_broker(long_poll)
    story.at(60.0).to_broker()
    story.broker(fetched(2)).to_broker(large).broker(APPENDED)
    assert live_buckets(limits)[0].used > 499
    known.client(long_poll + TINY).to_broker(long_poll + TINY)


def test_records_that_waited_behind_a_fetch_are_dropped_with_their_connection() -> None:
    limits = engine({}, resources=PRODUCERS_THOUSAND)
    story = connected(limits, "alice").client(fetch(2) + SMALL).to_broker(fetch(2))
    assert story.relay.status.waits_for_debt
    story.relay.end()
    connected(limits, "alice").client(SMALL).to_broker(SMALL)


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
@pytest.mark.parametrize("size", [20_000, 2 << 20])
@pytest.mark.parametrize("fails_first", [True, False])
def test_what_is_appended_after_all_is_charged_and_then_as_before(
    algorithm: str, size: int, fails_first: bool
) -> None:
    limits = engine({}, algorithm, resources=THOUSAND)
    large = producing([size])
    if fails_first:
        failing = rejected(ErrorCode.not_leader_or_follower)
        connected(limits, "alice").client(large).to_broker(large).broker(failing)
    story = connected(limits, "alice").client(large + TINY).to_broker(large)
    assert live_buckets(limits)[0].used == 0
    story.broker(APPENDED).to_broker()
    [bucket] = live_buckets(limits)
    assert bucket.used == size
    owed = bucket.wait(START)
    assert owed > 5.0
    # The response announces the wait, and a new connection waits, too.
    told = read_frame(response_type(0, 9), b"".join(story.relay.take_to_client()))
    assert told.throttle_time.total_seconds() > 5.0
    connected(limits, "alice").client(SMALL).to_broker()
    assert bucket.used == size + 900
    # The connection pays all of it, however often the wait is reviewed.
    story.at(owed - 1.0).to_broker()


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
def test_a_failure_does_not_let_a_client_pass_its_debt(algorithm: str) -> None:
    limits = engine({}, algorithm, resources=THOUSAND)
    failing = connected(limits, "alice").client(SMALL).to_broker(SMALL)
    other = connected(limits, "alice").client(LARGE).to_broker(LARGE)
    failing.broker(rejected(ErrorCode.corrupt_message))
    connected(limits, "alice").client(SMALL).to_broker()
    other.broker(produced(1, version=9))
    connected(limits, "alice").client(SMALL).to_broker()


def test_a_request_that_is_dropped_before_it_is_charged_gives_nothing_back() -> None:
    limits = engine({}, resources=THOUSAND)
    connected(limits, "alice").client(LARGE).to_broker(LARGE).broker(produced(1, version=9))
    used = live_buckets(limits)[0].used
    other = connected(limits, "alice")
    other.client(SMALL).to_broker()
    other.relay.end()
    assert live_buckets(limits)[0].used == used
