"""Bytes of each partition: produced and consumed."""

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch_grant import FetchGrant
from proxy.quota.fetch_plan import NO_BOUND, FetchItem, FetchPlan
from proxy.quota.identity import Identity
from proxy.quota.kinds.topic_partition_bytes.kind import KIND
from proxy.quota.limits.config_keys import (
    CONSUMER_BYTE_RATE,
    CONSUMER_BYTE_RATE_ACTION,
    OMIT,
    PRODUCER_BYTE_RATE,
    PRODUCER_BYTE_RATE_ACTION,
    REJECT,
)
from proxy.quota.limits.enforcement import OBSERVE, PACE, WINDOW
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.quota.verdict import ALLOW
from proxy.wire.api_keys import FETCH, PRODUCE, SHARE_FETCH
from proxy.wire.cursor import NO_ID
from proxy.wire.fetch_rewrite import Watermarks
from proxy.wire.views import Item, RequestView, ResponseView
from tests.support.stories.enforcement import enforcement

WHO = Identity("u", "c", "127.0.0.1")
IN, OUT = PRODUCER_BYTE_RATE.name, CONSUMER_BYTE_RATE.name
MAX_BYTES = 50 << 20


def limits(algorithm=PACE, topics=None, **settings):
    topics = topics or {"orders": {IN: "1000", OUT: "1000"}}
    return Limits({}, resources=Resources(topics), settings=enforcement(algorithm=algorithm, **settings))


def quota(configured=None):
    made = KIND.build()
    made.configure(configured or limits(), 0.0)
    return made


def items(*sizes, topic="orders"):
    """Items of the partitions from 0 on."""
    return [Item(topic, NO_ID, partition, size) for partition, size in enumerate(sizes)]


def produce(of, *sizes, now=0.0, topic="orders"):
    request = RequestView(PRODUCE, 9, 1, "c", 10_000)
    request.items = items(*sizes, topic=topic)
    return of.admit(request, WHO, now)


def fetch(of, now=0.0, api_key=FETCH, who=WHO, replica_id=-1):
    request = RequestView(api_key, 12, 1, "c", 100)
    request.max_bytes = MAX_BYTES
    request.replica_id = replica_id
    assert of.admit(request, who, now) is ALLOW
    grant = FetchGrant()
    of.limit_fetch(request, who, grant, now)
    grant.begin()
    grant.ask(now)
    return grant


def charge(of, *sizes, now=0.0, api_key=FETCH, topic="orders", replica_id=-1):
    request = RequestView(api_key, 12, 1, "c", 100)
    request.replica_id = replica_id
    response = ResponseView(12, True, 10_000)
    response.items = items(*sizes, topic=topic)
    return of.charge(request, response, WHO, now)


def test_a_producer_waits_for_its_worst_partition():
    made = quota()
    assert produce(made, 1000, 1000, 1000) is ALLOW
    verdict = produce(made, 500, 2000, 0)
    assert verdict.throttle_seconds == pytest.approx(2.0)
    assert (verdict.bucket.topic, verdict.bucket.partition) == ("orders", 1)


def test_a_window_is_kafkas():
    made = quota(limits(WINDOW))
    assert produce(made, 10_000) is ALLOW
    assert produce(made, 1000).throttle_seconds == pytest.approx(1.0)


def test_other_topics_and_topics_of_unknown_name_pass():
    made = quota()
    assert produce(made, 99_000, topic="others") is ALLOW
    assert produce(made, 99_000, topic="") is ALLOW
    assert charge(made, 99_000, topic="") is ALLOW
    assert made.live() == []


@pytest.mark.parametrize("api_key", [FETCH, SHARE_FETCH])
def test_a_consumer_is_charged_the_records_of_its_response(api_key):
    made = quota()
    verdict = charge(made, 3000, 1000, api_key=api_key)
    assert verdict.throttle_seconds == pytest.approx(2.0)
    assert (verdict.bucket.quota, verdict.bucket.partition) == (OUT, 0)


def test_producers_and_consumers_have_buckets_of_their_own():
    made = quota()
    assert produce(made, 1000) is ALLOW
    assert charge(made, 1000) is ALLOW
    assert sorted(bucket.quota for bucket in made.live()) == [OUT, IN]


def test_followers_pass():
    made = quota()
    engine = QuotaEngine([made])
    engine.configure(limits(), 0.0)
    request = RequestView(FETCH, 12, 1, "c", 100)
    request.replica_id = 2
    assert engine.grant(request, WHO, None, 0.0) is None
    assert charge(made, 99_000, replica_id=2) is ALLOW
    request = RequestView(FETCH, 12, 1, "c", 100)
    request.replica_id = 2
    assert made.charge_items(request, items(99_000), WHO, 0.0) is ALLOW


def test_a_fetch_is_bounded_by_its_slowest_partition():
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


def test_a_debt_is_remembered_until_it_is_paid():
    made = quota()
    charge(made, 200_000)
    assert not fetch(made, now=150.0).granted
    made.forget_idle(151.0)
    assert not fetch(made, now=152.0).granted
    assert fetch(made, now=200.0).granted


def test_a_consumer_of_other_topics_is_not_bounded():
    made = quota()
    charge(made, 600, topic="others")
    assert fetch(made).max_bytes == NO_BOUND


def withheld(of, grant, *sizes, topic="orders", now=0.0, api_key=FETCH):
    request = RequestView(api_key, 12, 1, "c", 100)
    return of.withholds(request, items(*sizes, topic=topic), WHO, grant, now)


def test_records_of_a_partition_that_the_fetch_was_not_known_to_bring_are_withheld_in_debt():
    """A client that reconnects is not known to consume a partition, and does not wait for it."""
    made = quota()
    charge(made, 3000)
    other = Identity("u", "c", "127.0.0.1")
    grant = fetch(made, who=other)
    assert grant.granted
    request = RequestView(FETCH, 12, 1, "c", 100)
    assert made.withholds(request, items(500), other, grant, 0.0).topic == "orders"
    assert made.withholds(request, items(0), other, grant, 0.0) is None
    # Its next fetch waits for the partition.
    waiting = fetch(made, now=1.0, who=other)
    assert not waiting.granted
    waiting.end()
    assert fetch(made, now=2.0, who=other).granted


def test_records_of_a_partition_that_others_wait_for_are_withheld():
    made = quota()
    charge(made, 3000)
    newcomer = Identity("u", "c", "127.0.0.1")
    grant = fetch(made, who=newcomer)
    assert not fetch(made, now=1.5).granted
    request = RequestView(FETCH, 12, 1, "c", 100)
    assert made.withholds(request, items(500), newcomer, grant, 2.0) is not None
    assert made.withholds(request, items(500), newcomer, grant, 9.0) is None, "nobody waits any more"


def test_records_of_a_partition_with_tokens_are_delivered():
    made = quota()
    assert withheld(made, fetch(made), 500) is None
    charge(made, 500)
    grant = fetch(made)
    charge(made, 2000)
    assert withheld(made, grant, 500) is None, "the fetch was granted"


def test_omitted_partitions_throttle_no_client():
    topics = {"orders": {OUT: "1000", CONSUMER_BYTE_RATE_ACTION.name: OMIT}}
    made = quota(limits(topics=topics))
    assert charge(made, 5000) is ALLOW
    assert made.live()[0].tokens.measure(0.0) == -4000


OMITTING = {"orders": {OUT: "1000", CONSUMER_BYTE_RATE_ACTION.name: OMIT}}


def plan(of, *partitions, now=0.0, topic="orders", replica_id=-1):
    found = []
    for partition in partitions:
        item = FetchItem(topic, partition, replica_id, Watermarks())
        item.max_bytes = 1 << 20
        found.append(item)
    made = FetchPlan(replica_id, found)
    of.plan_fetch(made, WHO, now)
    return made


@pytest.mark.parametrize(
    ("topics", "topic", "replica_id", "may"),
    [
        (OMITTING, "orders", -1, True),
        (OMITTING, "orders", 2, False),
        (OMITTING, "others", -1, False),
        ({"orders": {OUT: "1000"}}, "orders", -1, False),
        ({"orders": {CONSUMER_BYTE_RATE_ACTION.name: OMIT}}, "orders", -1, False),
        ({"<default>": OMITTING["orders"]}, "others", -1, True),
        ({"<default>": OMITTING["orders"]}, "__consumer_offsets", -1, False),
    ],
)
def test_topics_with_the_action_omit_may_be_omitted(topics, topic, replica_id, may):
    assert quota(limits(topics=topics)).may_omit(topic, 0, replica_id, WHO) is may


def test_a_partition_over_its_limit_is_omitted_until_its_debt_is_paid():
    made = quota(limits(topics=OMITTING))
    assert made.omits
    charge(made, 3000, 500)
    over, fine = plan(made, 0, 1).items
    assert (over.omitted, fine.omitted, fine.bound) == (True, False, 500)
    over.end()
    again = plan(made, 0)
    assert again.ask_again_at == pytest.approx(2.0)
    again.items[0].end()
    (back,) = plan(made, 0, now=2.0).items
    # Without tokens: a quarter of a second's worth.
    assert (back.omitted, back.bound) == (False, 250)
    assert plan(made, 0, topic="others").items[0].bound == NO_BOUND
    assert plan(made, 0, replica_id=1).omitted == 0


def test_with_windows_a_partition_is_omitted_as_long_as_its_client_would_wait():
    made = quota(limits(WINDOW, OMITTING))
    charge(made, 11_000)
    made_plan = plan(made, 0)
    assert (made_plan.omitted, made_plan.ask_again_at) == (1, pytest.approx(1.0))
    assert plan(made, 1).items[0].bound == 50, "the broker has not told of it"


def test_a_partition_that_does_not_exist_has_no_bucket():
    made = quota(limits(topics=OMITTING))
    assert [item.bound for item in plan(made, *range(1000)).items] == [50] * 1000
    assert made.live() == []


def plans_of(of, number=1, now=0.0):
    """Plans of as many fetches of partition 0, of which the broker has told."""
    found = []
    for _ in range(number):
        item = FetchItem("orders", 0, -1, Watermarks())
        item.max_bytes = 1 << 20
        item.marks.tell(70, 70, 0)
        found.append(FetchPlan(-1, [item]))
        of.plan_fetch(found[-1], WHO, now)
    return found


def test_what_fetches_in_flight_may_bring_is_reserved():
    made = quota(limits(topics=OMITTING))
    plans = plans_of(made, 30)
    # 50 bytes are expected of each, until it is known what they bring.
    assert [each.omitted for each in plans] == [0] * 21 + [1] * 9
    again = FetchPlan(-1, plans[-1].items)
    made.plan_fetch(again, WHO, 1.0)
    assert again.omitted == 0, "reservations end"


def test_who_disconnects_leaves_no_place_in_the_line():
    made = quota(limits(topics=OMITTING))
    charge(made, 2000)
    gone = plans_of(made, 100)
    assert plans_of(made)[0].ask_again_at > 5.0
    for each in gone:
        each.items[0].end()
    assert plans_of(made)[0].ask_again_at < 3.5


def test_a_fetch_that_is_planned_again_reserves_once():
    made = quota(limits(topics=OMITTING))
    (first,) = plans_of(made)
    for _ in range(100):
        made.plan_fetch(FetchPlan(-1, first.items), WHO, 0.0)
    assert not plans_of(made)[0].omitted


def test_an_omitted_partition_is_counted_once():
    made = quota(limits(topics=OMITTING))
    charge(made, 3000)
    charge(made, 1000, now=1.0)
    (bucket,) = made.live()
    assert (bucket.throttled_requests, bucket.throttle_seconds) == (2, pytest.approx(3.0))


def test_share_fetches_are_throttled_instead_of_omitted():
    made = quota(limits(topics=OMITTING))
    assert charge(made, 3000, api_key=SHARE_FETCH).throttle_seconds == pytest.approx(2.0)


def test_omitted_partitions_do_not_bound_a_fetch():
    made = quota(limits(topics=OMITTING))
    assert fetch(made).max_bytes == NO_BOUND
    charge(made, 3000)
    assert fetch(made).granted
    assert fetch(made).max_bytes == NO_BOUND
    both = quota(limits(topics=OMITTING | {"slow": {OUT: "4000"}}))
    assert fetch(both).max_bytes == 1000


def test_an_observed_quota_omits_nothing():
    made = quota(limits(topics=OMITTING, modes={OUT: OBSERVE}))
    assert not made.omits
    charge(made, 3000)
    (bucket,) = made.live()
    assert bucket.throttle_seconds == pytest.approx(2.0)


def test_later_items_of_a_large_frame_are_charged():
    made = quota()
    assert produce(made, 1000) is ALLOW
    request = RequestView(PRODUCE, 9, 1, "c", 5 << 20)
    assert made.charge_items(request, items(500), WHO, 0.0).throttle_seconds == pytest.approx(0.5)
    fetching = RequestView(FETCH, 12, 1, "c", 100)
    assert made.charge_items(fetching, items(1500), WHO, 0.0).throttle_seconds == pytest.approx(0.5)


def test_items_are_wanted_where_there_is_a_quota():
    assert quota(Limits({})).item_api_keys == ()
    assert not quota(Limits({})).active
    assert quota(limits(topics={"orders": {IN: "1"}})).item_api_keys == (PRODUCE,)
    assert quota(limits(topics={"orders": {OUT: "1"}})).item_api_keys == (FETCH, SHARE_FETCH)
    assert produce(quota(Limits({})), 99_000) is ALLOW
    assert not quota(Limits({})).limits_fetches
    assert quota(limits(topics={"orders": {OUT: "1"}})).limits_fetches


def test_observed_it_bounds_nothing_and_nobody_waits():
    engine = QuotaEngine([KIND.build()])
    engine.configure(limits(mode=OBSERVE), 0.0)
    assert produce(engine, 3000) is ALLOW
    assert charge(engine, 3000) is ALLOW
    grant = engine.grant(RequestView(FETCH, 12, 1, "c", 100), WHO, None, 0.0)
    assert grant.ask(0.0) == 0.0
    assert grant.max_bytes == NO_BOUND
    assert [state.throttle_seconds for state in engine.buckets(0.0)] == [2.0, 2.0]


def test_idle_state_is_dropped():
    made = quota()
    produce(made, 10)
    charge(made, 10)
    made.forget_idle(3599.0)
    assert len(made.live()) == 2
    made.forget_idle(3600.0)
    assert made.live() == []


def rejecting(algorithm=PACE, **settings):
    topics = {"orders": {IN: "1000", PRODUCER_BYTE_RATE_ACTION.name: REJECT}, "others": {IN: "1000"}}
    return quota(limits(algorithm, topics, **settings))


@pytest.mark.parametrize(("algorithm", "burst"), [(PACE, 1000), (WINDOW, 10_000)])
def test_a_rejecting_topics_partitions_are_rejected_while_they_are_over(algorithm, burst):
    made = rejecting(algorithm)
    assert made.rejects
    assert produce(made, burst + 500, burst) is ALLOW, "nobody waits"
    over = {}
    made.reject(items(10, 10), over, 0.0)
    assert {place: bucket.partition for place, bucket in over.items()} == {0: 0}
    over.clear()
    made.reject(items(10), over, 0.4)
    assert 0 in over
    made.reject(items(10), over := {}, 1.5)
    assert over == {}


def test_topics_that_throttle_are_not_rejected():
    made = rejecting()
    assert produce(made, 3000, topic="others").throttle_seconds == 2.0
    over = {}
    made.reject([*items(10, topic="others"), *items(10, topic="")], over, 0.0)
    assert over == {}
    assert not quota().rejects


def test_a_rejecting_topic_that_is_only_observed_counts_waits():
    made = rejecting(mode=OBSERVE)
    assert not made.rejects
    assert produce(made, 3000).throttle_seconds == 2.0
