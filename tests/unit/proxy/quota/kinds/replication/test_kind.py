"""Which replicas a throttle omits from a fetch, what is charged, and what is shown."""

import pytest

from proxy.quota.cluster_view import ClusterView
from proxy.quota.fetch.follower_plan import FollowerPlan
from proxy.quota.identity import Identity
from proxy.quota.kinds.replication.kind import Replication
from proxy.quota.kinds.replication.state import ThrottleState
from proxy.quota.limits.enforcement import OBSERVE, PACE
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.quota.verdict import ALLOW
from proxy.wire.addresses import BrokerAddress
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item, RequestView, ResponseView
from tests.support.quotas.enforcement import enforcement
from tests.support.simulations.move import (
    MEBIBYTE,
    START,
    TOPIC,
    Fetcher,
    copies,
    quotas,
    run,
    throttled,
)

RATE = 4 * MEBIBYTE
PLENTY = 10**10
WHO = Identity("ANONYMOUS", "", "127.0.0.1")


def plan_of(
    quota: Replication,
    now: float = START,
    *,
    offset: int = 0,
    watermark: int = -1,
    follower: int = 2,
    batch: int = 0,
    who: Identity = WHO,
) -> FollowerPlan:
    """One plan for one partition."""
    (copy,) = copies(follower, 1, PLENTY)
    copy.item.fetch_offset = offset
    copy.item.marks.high_watermark = watermark
    copy.item.marks.batch_bytes = batch
    plan = FollowerPlan([copy.item], [], None)
    quota.plan_follower_fetch(plan, who, now)
    return plan


def spend(
    quota: Replication, size: int = 100 * MEBIBYTE, now: float = START, follower: int = 2, partition: int = 0
) -> None:
    request = RequestView(1, 17, 1, "", 100)
    request.replica_id = follower
    response = ResponseView(17, True, 100, True)
    response.add(Item(TOPIC, NO_ID, partition, size))
    quota.charge(request, response, WHO, now)


@pytest.fixture
def spent() -> Replication:
    """A leader's quota that is far over."""
    quota = quotas(throttled(RATE), [1])[1]
    spend(quota)
    return quota


def limited(quota: Replication, now: float) -> list[ThrottleState]:
    """What is shown of the sides that have a limit."""
    return [state for state in quota.shared.report(now) if state.limited]


def test_a_replica_that_is_not_in_sync_is_omitted(spent: Replication) -> None:
    plan = plan_of(spent, offset=49, watermark=50)
    assert plan.omitted == 1
    assert plan.ask_again_at > START + 1


@pytest.mark.parametrize("sides", [(RATE, None), (None, RATE)], ids=["leader", "follower"])
@pytest.mark.parametrize(
    ("offset", "watermark", "omitted"),
    [(50, 50, 0), (51, 50, 0), (49, 50, 1), (0, -1, 1), (0, 0, 0)],
    ids=["at it", "beyond it", "behind it", "unknown", "empty"],
)
def test_the_last_high_watermark_says_which_replicas_are_in_sync(
    sides: tuple[int | None, int | None], offset: int, watermark: int, omitted: int
) -> None:
    quota = quotas(throttled(*sides), [1])[1]
    spend(quota)
    assert plan_of(quota, offset=offset, watermark=watermark).omitted == omitted


def test_metadata_does_not_matter(spent: Replication) -> None:
    """Metadata shows a follower that was away in the ISR, and one that has just caught up outside."""
    spent.see_cluster(ClusterView("c", {}, {}, {(TOPIC, 0): 1}), START)
    assert plan_of(spent, offset=49, watermark=50).omitted == 1
    assert plan_of(spent, offset=50, watermark=50).omitted == 0


def test_a_high_watermark_from_an_earlier_connection_does_not_count(spent: Replication) -> None:
    assert plan_of(spent, offset=100, watermark=100).omitted == 0
    assert plan_of(spent, START + 1, offset=100).omitted == 1


def test_replicas_in_sync_count_for_those_that_are_not() -> None:
    quota = quotas(throttled(RATE), [1])[1]
    plan_of(quota, offset=50, watermark=50)
    spend(quota)
    (state,) = limited(quota, START)
    assert (state.rate, state.inbound, state.total_bytes) == (100 * MEBIBYTE,) * 3
    assert plan_of(quota, follower=3).omitted == 1


def test_consumers_are_not_charged(spent: Replication) -> None:
    assert not spent.may_omit(TOPIC, 0, -1, WHO)
    assert spent.may_omit(TOPIC, 0, 2, WHO)
    spend(spent, follower=-1)
    assert limited(spent, START)[0].total_bytes == 100 * MEBIBYTE


def fetching(follower: int) -> RequestView:
    request = RequestView(1, 17, 1, "", 100)
    request.replica_id = follower
    return request


def test_later_items_of_a_large_fetch_are_charged_to_its_follower() -> None:
    quota = quotas(throttled(RATE), [1])[1]
    later = [
        Item(TOPIC, NO_ID, 0, 5 * RATE),
        Item(TOPIC, NO_ID, 1, 0),
        Item("", bytes(16), 2, RATE),
    ]
    assert quota.charge_items(fetching(-1), later, WHO, START) is ALLOW
    assert limited(quota, START) == []
    assert quota.charge_items(fetching(2), later, WHO, START) is ALLOW
    assert limited(quota, START)[0].total_bytes == 5 * RATE
    assert plan_of(quota, offset=49, watermark=50).omitted == 1


@pytest.mark.parametrize(("partial", "batch"), [(False, 2), (True, 1)])
def test_a_replica_without_records_gets_more_next_time_unless_the_rest_of_the_response_is_missing(
    partial: bool, batch: int
) -> None:
    quota = quotas(throttled(RATE), [1])[1]
    plan_of(quota, watermark=50, batch=MEBIBYTE)
    (replica,) = quota.shared.replicas.values()
    replica.batch_bytes = replica.granted
    before = replica.granted
    response = ResponseView(17, True, 100, True)
    response.partial = partial
    assert quota.charge(fetching(2), response, WHO, START) is ALLOW
    assert (replica.batch_bytes, replica.granted) == (batch * before, 0)


def test_only_listed_or_switched_replicas_are_omitted() -> None:
    limits = throttled(RATE, topics={"u": {"leader.replication.throttled.replicas": "0:1"}})
    quota = quotas(limits, [1])[1]
    assert quota.may_omit("u", 0, 2, WHO)
    assert not quota.may_omit("u", 1, 2, WHO)
    assert not quota.may_omit(TOPIC, 0, 2, WHO)
    switched = quotas(
        throttled(RATE, topics={}, brokers={"1": {"leader.replication.throttled": "true"}}), [1, 2]
    )
    assert [switched[node_id].may_omit(TOPIC, 0, 3, WHO) for node_id in (1, 2)] == [True, False]


@pytest.mark.parametrize(
    "limits",
    [
        Limits({}),
        throttled(RATE, topics={}),
        Limits({}, resources=Resources({TOPIC: {"leader.replication.throttled.replicas": "*"}})),
    ],
)
def test_it_is_inactive_without_a_rate_or_without_replicas(limits: Limits) -> None:
    quota = quotas(limits, [1])[1]
    assert not quota.active
    assert not quota.wants_partitions
    assert not quota.omits


def test_grants_of_a_closed_connection_are_released() -> None:
    """A batch that takes this limit a quarter of an hour."""
    quota = quotas(throttled(1000), [1])[1]
    assert plan_of(quota, batch=MEBIBYTE).omitted == 0
    later = START + 61
    other = Identity("ANONYMOUS", "", "127.0.0.1")
    assert plan_of(quota, later, who=other).omitted == 1
    quota.forget_idle(later)
    assert plan_of(quota, later, who=other).omitted == 0


def test_observed_it_only_counts() -> None:
    resources = throttled(RATE).resources
    quota = quotas(Limits({}, resources=resources, settings=enforcement(algorithm=PACE, mode=OBSERVE)), [1])[
        1
    ]
    assert not quota.may_omit(TOPIC, 0, 2, WHO)
    spend(quota)
    assert limited(quota, START)[0].total_bytes == 100 * MEBIBYTE


def test_each_side_may_be_observed_alone() -> None:
    resources = throttled(RATE, RATE).resources
    modes = {"follower.replication.throttled.rate": OBSERVE}
    quota = quotas(Limits({}, resources=resources, settings=enforcement(algorithm=PACE, modes=modes)), [1])[1]
    spend(quota)
    assert plan_of(quota).omitted == 1
    (replica,) = quota.shared.replicas.values()
    assert [throttle.role for throttle in replica.throttles] == ["leader"]
    assert {state.role: state.enforced for state in limited(quota, START)} == {
        "leader": True,
        "follower": False,
    }
    assert {state.total_bytes for state in limited(quota, START)} == {100 * MEBIBYTE}


def test_observed_use_is_no_debt() -> None:
    resources = throttled(RATE).resources
    quota = quotas(Limits({}, resources=resources, settings=enforcement(algorithm=PACE, mode=OBSERVE)), [1])[
        1
    ]
    spend(quota)
    quota.configure(Limits({}, resources=resources, settings=enforcement(algorithm=PACE)), START)
    assert plan_of(quota).omitted == 0


def test_the_state_of_a_reassignment() -> None:
    quota = quotas(throttled(RATE), [1])[1]
    fetcher = Fetcher(quota, 2, copies(2, 4, 50 * MEBIBYTE))
    run([fetcher], 30)
    now = fetcher.wakes_at
    (state,) = limited(quota, now)
    assert (state.role, state.node_id, state.limit) == ("leader", 1, RATE)
    assert state.behind == 4
    assert state.omitted > 10
    assert state.rate == pytest.approx(RATE, rel=0.1)
    assert state.since == pytest.approx(START, abs=0.1)
    assert state.lag == sum(copy.left for copy in fetcher.copies) // 100
    assert not state.too_low
    quota.forget_idle(now + 61)
    assert quota.shared.replicas == {}


def test_a_forgotten_replica_that_is_fetched_again_is_shown_again() -> None:
    """The partition is still in its session, and keeps what the quota knew of it."""
    quota = quotas(throttled(RATE), [1])[1]
    (copy,) = copies(2, 1, PLENTY)
    copy.item.marks.high_watermark = 50
    quota.plan_follower_fetch(FollowerPlan([copy.item], [], None), WHO, START)
    later = START + 61
    quota.forget_idle(later)
    assert limited(quota, later)[0].behind == 0
    quota.plan_follower_fetch(FollowerPlan([copy.item], [], None), WHO, later)
    assert limited(quota, later)[0].behind == 1
    assert len(quota.shared.replicas) == 1


def test_sessions_of_one_follower_share_what_is_known_of_a_replica() -> None:
    quota = quotas(throttled(RATE), [1])[1]
    for _ in range(2):
        (copy,) = copies(2, 1, PLENTY)
        quota.plan_follower_fetch(FollowerPlan([copy.item], [], None), WHO, START)
    assert len(quota.shared.replicas) == 1


def test_every_broker_is_shown_from_the_start() -> None:
    quota = quotas(throttled(None, RATE), [1])[1]
    quota.see_cluster(ClusterView("c", {1: BrokerAddress(1, "h", 1), 2: BrokerAddress(2, "h", 2)}, {}), START)
    shown = {(state.role, state.node_id): state.limited for state in quota.shared.report(START)}
    assert shown == {("leader", 1): False, ("follower", 1): True, ("leader", 2): False, ("follower", 2): True}


def test_a_limit_below_the_inbound_rate_is_too_low() -> None:
    quota = quotas(throttled(RATE), [1])[1]
    fetcher = Fetcher(quota, 2, copies(2, 4, 50 * MEBIBYTE))

    def produce(seconds: int) -> list[tuple[float, int]]:
        came = []
        for second in range(seconds):
            for copy in fetcher.copies:
                copy.size += RATE // 2
            came = run([fetcher], second + 1)
        return came

    produce(40)
    (state,) = limited(quota, fetcher.wakes_at)
    assert state.inbound == pytest.approx(2 * RATE, rel=0.2)
    assert state.too_low
