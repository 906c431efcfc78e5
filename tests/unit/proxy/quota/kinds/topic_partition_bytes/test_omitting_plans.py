"""A partition's quota with the action `omit`: partitions are omitted from fetches."""

import pytest

from proxy.quota.fetch.consumer_plan import ConsumerItem, ConsumerPlan
from proxy.quota.kinds.topic_partition_bytes.kind import TopicPartitionBytes
from proxy.quota.kinds.topic_partition_bytes.omitting_plans import PLACE_SECONDS
from proxy.quota.limits.config_keys import CONSUMER_BYTE_RATE_ACTION, OMIT
from proxy.quota.limits.enforcement import OBSERVE, WINDOW
from proxy.quota.verdict import ALLOW
from proxy.wire.api_keys import SHARE_FETCH
from proxy.wire.fetch.request import NO_BOUND
from proxy.wire.fetch.rewrite import Watermarks
from tests.support.present import present
from tests.support.quotas.partition_quota import OMITTING, OUT, WHO, charge, fetch, limits, quota


def test_omitted_partitions_throttle_no_client() -> None:
    made = quota(limits(topics=OMITTING))
    assert charge(made, 5000) is ALLOW
    assert present(made.live()[0].tokens).measure(0.0) == -4000


def plan(of: TopicPartitionBytes, *partitions: int, now: float = 0.0, topic: str = "orders") -> ConsumerPlan:
    found = []
    for partition in partitions:
        item = ConsumerItem(topic, partition, Watermarks())
        item.max_bytes = 1 << 20
        found.append(item)
    made = ConsumerPlan(found)
    of.plan_consumer_fetch(made, WHO, now)
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
def test_topics_with_the_action_omit_may_be_omitted(
    topics: dict[str, dict[str, str]], topic: str, replica_id: int, may: bool
) -> None:
    assert quota(limits(topics=topics)).may_omit(topic, 0, replica_id, WHO) is may


def test_a_partition_over_its_limit_is_omitted_until_its_debt_is_paid() -> None:
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


def test_with_windows_a_partition_is_omitted_as_long_as_its_client_would_wait() -> None:
    made = quota(limits(WINDOW, OMITTING))
    charge(made, 11_000)
    made_plan = plan(made, 0)
    assert made_plan.omitted == 1
    assert made_plan.ask_again_at == pytest.approx(1.0)
    assert plan(made, 1).items[0].bound == 50, "the broker has not told of it"


def test_a_partition_that_does_not_exist_has_no_bucket() -> None:
    made = quota(limits(topics=OMITTING))
    assert [item.bound for item in plan(made, *range(1000)).items] == [50] * 1000
    assert made.live() == []


def plans_of(of: TopicPartitionBytes, number: int = 1, now: float = 0.0) -> list[ConsumerPlan]:
    """Plans of as many fetches of partition 0, of which the broker has told."""
    found = []
    for _ in range(number):
        item = ConsumerItem("orders", 0, Watermarks())
        item.max_bytes = 1 << 20
        item.marks.tell(70, 70, 0)
        found.append(ConsumerPlan([item]))
        of.plan_consumer_fetch(found[-1], WHO, now)
    return found


def test_what_fetches_in_flight_may_bring_is_reserved() -> None:
    made = quota(limits(topics=OMITTING))
    plans = plans_of(made, 30)
    # 50 bytes are expected of each, until it is known what they bring.
    assert [each.omitted for each in plans] == [0] * 21 + [1] * 9
    again = ConsumerPlan(plans[-1].items)
    made.plan_consumer_fetch(again, WHO, 1.0)
    assert again.omitted == 0, "reservations end"


def test_who_disconnects_leaves_no_place_in_the_line() -> None:
    made = quota(limits(topics=OMITTING))
    charge(made, 2000)
    gone = plans_of(made, 100)
    assert plans_of(made)[0].ask_again_at > 5.0
    for each in gone:
        each.items[0].end()
    assert plans_of(made)[0].ask_again_at < 3.5


def test_who_does_not_fetch_again_after_its_response_loses_the_place() -> None:
    """However far its turn is away."""
    made = quota(limits(topics=OMITTING))
    charge(made, 2000)
    for item in [each.items[0] for each in plans_of(made, 100)]:
        made.plan_consumer_fetch(ConsumerPlan([item], answer_at=0.2), WHO, 0.0)
    assert plans_of(made, now=0.6)[0].ask_again_at > 5.0
    assert plans_of(made, now=0.2 + PLACE_SECONDS)[0].ask_again_at < 3.5


def test_a_fetch_that_is_planned_again_reserves_once() -> None:
    made = quota(limits(topics=OMITTING))
    (first,) = plans_of(made)
    for _ in range(100):
        made.plan_consumer_fetch(ConsumerPlan(first.items), WHO, 0.0)
    assert not plans_of(made)[0].omitted


def test_an_omitted_partition_is_counted_once() -> None:
    made = quota(limits(topics=OMITTING))
    charge(made, 3000)
    charge(made, 1000, now=1.0)
    (bucket,) = made.live()
    assert bucket.throttled_requests == 2
    assert bucket.throttle_seconds == pytest.approx(3.0)


def test_share_fetches_are_throttled_instead_of_omitted() -> None:
    made = quota(limits(topics=OMITTING))
    assert charge(made, 3000, api_key=SHARE_FETCH).throttle_seconds == pytest.approx(2.0)


def test_omitted_partitions_do_not_bound_a_fetch() -> None:
    made = quota(limits(topics=OMITTING))
    assert fetch(made).max_bytes == NO_BOUND
    charge(made, 3000)
    assert fetch(made).granted
    assert fetch(made).max_bytes == NO_BOUND
    both = quota(limits(topics=OMITTING | {"slow": {OUT: "4000"}}))
    assert fetch(both).max_bytes == 1000


def test_an_observed_quota_omits_nothing() -> None:
    made = quota(limits(topics=OMITTING, modes={OUT: OBSERVE}))
    assert not made.omits
    charge(made, 3000)
    (bucket,) = made.live()
    assert bucket.throttle_seconds == pytest.approx(2.0)
