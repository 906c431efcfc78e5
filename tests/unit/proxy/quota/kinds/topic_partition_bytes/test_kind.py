"""A partition's quota: producers and consumers are throttled, and producers rejected."""

from collections import Counter
from random import Random
from typing import Unpack

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch.grant import FetchGrant
from proxy.quota.identity import Identity
from proxy.quota.kinds.topic_partition_bytes.kind import KIND, TopicPartitionBytes
from proxy.quota.limits.config_keys import CONSUMER_BYTE_RATE_ACTION, OMIT, PRODUCER_BYTE_RATE_ACTION, REJECT
from proxy.quota.limits.enforcement import OBSERVE, PACE, WINDOW
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket
from proxy.quota.verdict import ALLOW
from proxy.wire.api_keys import FETCH, PRODUCE, SHARE_FETCH
from proxy.wire.cursor import NO_ID
from proxy.wire.fetch.request import NO_BOUND
from proxy.wire.views import Item, RequestView, ResponseView
from tests.support.present import present
from tests.support.quotas.buckets import bucket_states
from tests.support.quotas.enforcement import EnforcementOptions
from tests.support.quotas.forgetting import forget_idle
from tests.support.quotas.partition_quota import (
    IN,
    OUT,
    WHO,
    charge,
    fetch,
    items,
    limits,
    produce,
    quota,
    response,
)


def test_a_producer_waits_for_its_worst_partition() -> None:
    made = quota()
    assert produce(made, 1000, 1000, 1000) is ALLOW
    verdict = produce(made, 500, 2000, 0)
    assert verdict.throttle_seconds == pytest.approx(2.0)
    assert (present(verdict.bucket).topic, present(verdict.bucket).partition) == ("orders", 1)


def test_a_window_is_kafkas() -> None:
    made = quota(limits(WINDOW))
    assert produce(made, 10_000) is ALLOW
    assert produce(made, 1000).throttle_seconds == pytest.approx(1.0)


def test_other_topics_and_topics_of_unknown_name_pass() -> None:
    made = quota()
    assert produce(made, 99_000, topic="others") is ALLOW
    assert produce(made, 99_000, topic="") is ALLOW
    assert charge(made, 99_000, topic="") is ALLOW
    assert made.live() == []


@pytest.mark.parametrize("api_key", [FETCH, SHARE_FETCH])
def test_a_consumer_is_charged_the_records_of_its_response(api_key: int) -> None:
    made = quota()
    verdict = charge(made, 3000, 1000, api_key=api_key)
    assert verdict.throttle_seconds == pytest.approx(2.0)
    assert (present(verdict.bucket).quota, present(verdict.bucket).partition) == (OUT, 0)


def test_producers_and_consumers_have_buckets_of_their_own() -> None:
    made = quota()
    assert produce(made, 1000) is ALLOW
    assert charge(made, 1000) is ALLOW
    assert sorted(bucket.quota for bucket in made.live()) == [OUT, IN]


def test_followers_pass() -> None:
    made = quota()
    engine = QuotaEngine([made])
    engine.configure(limits(), 0.0)
    request = RequestView(FETCH, 12, 1, "c", 100)
    request.replica_id = 2
    assert not engine.limit_fetch(request, WHO, FetchGrant(), 0.0)
    assert charge(made, 99_000, replica_id=2) is ALLOW
    request = RequestView(FETCH, 12, 1, "c", 100)
    request.replica_id = 2
    assert made.charge_items(request, items(99_000), WHO, 0.0) is ALLOW


def test_a_fetch_is_bounded_by_its_slowest_partition() -> None:
    made = quota(limits(topics={"orders": {OUT: "1000"}, "others": {OUT: "50"}}))
    assert fetch(made).max_bytes == 12, "nothing is known yet"
    charge(made, 600)
    first = fetch(made)
    assert first.max_bytes == 400
    first.end()
    charge(made, 2000)
    waiting = fetch(made)
    assert not waiting.granted
    waiting.end()
    charge(made, 10, topic="others")
    later = fetch(made, now=2.0)
    assert later.max_bytes == 50
    later.end()
    assert fetch(made, now=63.0).max_bytes == 12


def test_a_debt_is_remembered_until_it_is_paid() -> None:
    made = quota()
    charge(made, 200_000)
    assert not fetch(made, now=150.0).granted
    forget_idle(made, 151.0)
    assert not fetch(made, now=152.0).granted
    assert fetch(made, now=200.0).granted


def test_a_consumer_of_other_topics_is_not_bounded() -> None:
    made = quota()
    charge(made, 600, topic="others")
    assert fetch(made).max_bytes == NO_BOUND


def withheld(
    of: TopicPartitionBytes,
    grant: FetchGrant,
    *sizes: int,
    topic: str = "orders",
    now: float = 0.0,
    api_key: int = FETCH,
) -> Bucket | None:
    request = RequestView(api_key, 12, 1, "c", 100)
    return of.withholds(request, response(*sizes, topic=topic), WHO, grant, now)


def test_records_of_a_partition_that_the_fetch_was_not_known_to_bring_are_withheld_in_debt() -> None:
    """A client that reconnects is not known to consume a partition, and does not wait for it."""
    made = quota()
    charge(made, 3000)
    other = Identity("u", "c", "127.0.0.1")
    grant = fetch(made, who=other)
    assert grant.granted
    request = RequestView(FETCH, 12, 1, "c", 100)
    assert present(made.withholds(request, response(500), other, grant, 0.0)).topic == "orders"
    assert made.withholds(request, response(0), other, grant, 0.0) is None
    # Its next fetch waits for the partition.
    waiting = fetch(made, now=1.0, who=other)
    assert not waiting.granted
    waiting.end()
    assert fetch(made, now=2.0, who=other).granted


def test_records_of_a_partition_that_others_wait_for_are_withheld() -> None:
    made = quota()
    charge(made, 3000)
    newcomer = Identity("u", "c", "127.0.0.1")
    grant = fetch(made, who=newcomer)
    assert not fetch(made, now=1.5).granted
    request = RequestView(FETCH, 12, 1, "c", 100)
    assert made.withholds(request, response(500), newcomer, grant, 2.0) is not None
    assert made.withholds(request, response(500), newcomer, grant, 9.0) is None, "nobody waits any more"


def test_records_of_a_partition_with_tokens_are_delivered() -> None:
    made = quota()
    assert withheld(made, fetch(made), 500) is None
    charge(made, 500)
    grant = fetch(made)
    charge(made, 2000)
    assert withheld(made, grant, 500) is None, "the fetch was granted"


def test_later_items_of_a_large_frame_are_charged() -> None:
    made = quota()
    assert produce(made, 1000) is ALLOW
    request = RequestView(PRODUCE, 9, 1, "c", 5 << 20)
    assert made.charge_items(request, items(500), WHO, 0.0).throttle_seconds == pytest.approx(0.5)
    fetching = RequestView(FETCH, 12, 1, "c", 100)
    assert made.charge_items(fetching, items(1500), WHO, 0.0).throttle_seconds == pytest.approx(0.5)


def test_items_are_wanted_where_there_is_a_quota() -> None:
    assert quota(Limits({})).item_api_keys == ()
    assert not quota(Limits({})).active
    assert quota(limits(topics={"orders": {IN: "1"}})).item_api_keys == (PRODUCE,)
    assert quota(limits(topics={"orders": {OUT: "1"}})).item_api_keys == (FETCH, SHARE_FETCH)
    assert produce(quota(Limits({})), 99_000) is ALLOW
    assert not quota(Limits({})).limits_fetches
    assert quota(limits(topics={"orders": {OUT: "1"}})).limits_fetches


def test_observed_it_bounds_nothing_and_nobody_waits() -> None:
    engine = QuotaEngine([KIND.build()])
    engine.configure(limits(mode=OBSERVE), 0.0)
    assert produce(engine, 3000) is ALLOW
    assert charge(engine, 3000) is ALLOW
    grant = FetchGrant()
    assert engine.limit_fetch(RequestView(FETCH, 12, 1, "c", 100), WHO, grant, 0.0)
    assert grant.ask(0.0) == 0.0
    assert grant.max_bytes == NO_BOUND
    assert [state.throttle_seconds for state in bucket_states(engine, 0.0)] == [2.0, 2.0]


def test_idle_state_is_dropped() -> None:
    made = quota()
    produce(made, 10)
    charge(made, 10)
    forget_idle(made, 3599.0)
    assert len(made.live()) == 2
    forget_idle(made, 3600.0)
    assert made.live() == []


def rejecting(algorithm: str = PACE, **settings: Unpack[EnforcementOptions]) -> TopicPartitionBytes:
    topics = {"orders": {IN: "1000", PRODUCER_BYTE_RATE_ACTION.name: REJECT}, "others": {IN: "1000"}}
    return quota(limits(algorithm, topics, **settings))


@pytest.mark.parametrize(("algorithm", "burst"), [(PACE, 1000), (WINDOW, 10_000)])
def test_a_rejecting_topics_partitions_are_rejected_while_they_are_over(algorithm: str, burst: int) -> None:
    made = rejecting(algorithm)
    assert made.rejects
    assert produce(made, burst + 500, burst) is ALLOW, "nobody waits"
    over: dict[int, Bucket] = {}
    made.reject(items(10, 10), over, 0.0)
    assert {place: bucket.partition for place, bucket in over.items()} == {0: 0}
    over.clear()
    made.reject(items(10), over, 0.4)
    assert 0 in over
    over.clear()
    made.reject(items(10), over, 1.5)
    assert over == {}


def test_topics_that_throttle_are_not_rejected() -> None:
    made = rejecting()
    assert produce(made, 3000, topic="others").throttle_seconds == 2.0
    over: dict[int, Bucket] = {}
    made.reject([*items(10, topic="others"), *items(10, topic="")], over, 0.0)
    assert over == {}
    assert not quota().rejects


def test_a_rejecting_topic_that_is_only_observed_counts_waits() -> None:
    made = rejecting(mode=OBSERVE)
    assert not made.rejects
    assert produce(made, 3000).throttle_seconds == 2.0


NOT_APPENDED = 2
TIMED_OUT = 7
DENIED = 29


def rejected(made: TopicPartitionBytes, error_code: int, size: int = 3000, window: bool = False) -> None:
    """A Produce request of partitions 0 and 1, and the broker's response for partition 0."""
    request = RequestView(PRODUCE, 9, 1, "c", 10_000)
    request.items = items(size, size)
    made.admit(request, WHO, 0.0)
    response = ResponseView(9, True, 100)
    response.items = [
        Item("orders", NO_ID, partition, 0, b"", code) for partition, code in ((0, error_code), (1, 0))
    ]
    assert made.charge(request, response, WHO, 0.0) is ALLOW


@pytest.mark.parametrize("error_code", [NOT_APPENDED, DENIED])
@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
def test_what_the_broker_does_not_append_is_given_back(algorithm: str, error_code: int) -> None:
    made = quota(limits(algorithm))
    rejected(made, error_code)
    over = {bucket.partition: bucket.over(0.0) for bucket in made.live()}
    assert over.pop(0, False) is False
    assert over == {1: algorithm == PACE}


def test_what_is_appended_and_late_is_not_given_back() -> None:
    made = quota()
    rejected(made, TIMED_OUT)
    assert {bucket.partition: bucket.over(0.0) for bucket in made.live()} == {0: True, 1: True}


def test_made_up_partitions_leave_no_bucket() -> None:
    made = quota()
    rejected(made, 3)
    assert [bucket.partition for bucket in made.live()] == [1]


def test_of_a_large_request_all_that_was_sent_is_given_back() -> None:
    made = quota()
    request = RequestView(PRODUCE, 9, 1, "c", 10_000)
    request.sent = items(3000)
    made.charge_items(request, request.sent, WHO, 0.0)
    response = ResponseView(9, True, 100)
    response.items = [Item("orders", NO_ID, 0, 0, b"", NOT_APPENDED)]
    made.charge(request, response, WHO, 0.0)
    assert [bucket.over(0.0) for bucket in made.live()] == [False]


def test_a_response_that_the_fetch_was_known_to_bring_is_charged_as_any_other() -> None:
    """The relay first asks whether to withhold it, and the quota then charges it without looking it up."""
    asked, other = quota(), quota()
    request = RequestView(FETCH, 12, 1, "c", 100)
    known = []
    for at, sizes in enumerate([(100, 600), (100, 1600), (300, 100), (100,), (100, 200), (100, 200)]):
        grant = fetch(asked, now=float(at))
        brought = response(*sizes)
        assert asked.withholds(request, brought, WHO, grant, float(at)) is None
        grant.cancel()
        known.append(brought.found is not None)
        verdict = asked.charge(request, brought, WHO, float(at))
        assert verdict.throttle_seconds == charge(other, *sizes, now=float(at)).throttle_seconds
        assert (verdict is ALLOW) == (at != 1), "the second partition owes 600 bytes"
    assert known == [False, True, True, True, False, True]
    assert [bucket.used for bucket in asked.live()] == [bucket.used for bucket in other.live()] == [800, 2700]


def test_of_a_response_that_another_quota_withholds_no_partition_is_charged() -> None:
    made = quota()
    charge(made, 100, 100)
    grant = fetch(made)
    brought = response(100, 100)
    request = RequestView(FETCH, 12, 1, "c", 100)
    assert made.withholds(request, brought, WHO, grant, 0.0) is None
    brought.items = []
    assert made.charge(request, brought, WHO, 0.0) is ALLOW
    assert [bucket.used for bucket in made.live()] == [100, 100]


def test_partitions_are_charged_in_any_order_while_limits_change() -> None:
    random = Random(3)
    both = {"a": {OUT: "1000"}, "b": {OUT: "2000", CONSUMER_BYTE_RATE_ACTION.name: OMIT}}
    changed = ({"a": {OUT: "500"}}, {"b": {OUT: "2000"}}, both)
    limited = both
    made = quota(limits(topics=both))
    every = [(topic, partition) for topic in ("a", "b") for partition in range(4)]
    expected: Counter[tuple[str, int]] = Counter()
    for at in range(500):
        if random.random() < 0.1:
            limited = random.choice(changed)
            made.configure(limits(topics=limited), at / 10)
        places = every if random.random() < 0.7 else random.sample(every, random.randrange(len(every)))
        response = ResponseView(12, True, 100, True)
        response.items = [Item(topic, NO_ID, number, random.randrange(3)) for topic, number in places]
        made.charge(RequestView(FETCH, 12, 1, "c", 100), response, WHO, at / 10)
        for item in response.items:
            if item.topic in limited:
                expected[item.topic, item.partition] += item.size
    made.configure(limits(topics=both), 60.0)
    assert {(bucket.topic, bucket.partition): bucket.used for bucket in made.live()} == expected
