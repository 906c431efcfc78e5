"""Replication quotas on followers that catch up: see tests/support/simulations/move.py."""

import statistics
from itertools import pairwise

import pytest

from proxy.quota.cluster_view import ClusterView
from proxy.quota.follower_plan import FollowerPlan
from proxy.quota.identity import Identity
from proxy.quota.kinds.replication.kind import Replication
from proxy.quota.kinds.replication.state import ThrottleState
from proxy.quota.limits.enforcement import OBSERVE, PACE, WINDOW
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
    by_second,
    copies,
    quotas,
    run,
    throttled,
)

RATE = 4 * MEBIBYTE
SECONDS = 20
PLENTY = 10**10
WHO = Identity("ANONYMOUS", "", "127.0.0.1")


def steady(came: list[tuple[float, int]], seconds: int = SECONDS) -> list[int]:
    """Bytes of each second after the first two."""
    return by_second(came, seconds)[2:]


def paced(came: list[tuple[float, int]], rate: int = RATE, variation: float = 0.15) -> None:
    sizes = steady(came)
    assert statistics.mean(sizes) == pytest.approx(rate, rel=0.05)
    assert statistics.pstdev(sizes) / statistics.mean(sizes) < variation


@pytest.mark.parametrize("limits", [throttled(RATE), throttled(None, RATE), throttled(RATE, RATE)])
@pytest.mark.parametrize("batch", [1000, 16_000, 200_000])
def test_the_rate_of_a_reassignment_is_even(limits: Limits, batch: int) -> None:
    fetcher = Fetcher(quotas(limits, [1])[1], 2, copies(2, 8, PLENTY, batch))
    came = run([fetcher], SECONDS)
    paced(came)
    assert max(by_second(came, 1)) <= 2.1 * RATE
    assert max(copy.longest_wait for copy in fetcher.copies) < 3.0


def test_replicas_start_one_by_one() -> None:
    """A follower takes long over the first bytes of each, and fetches nothing else meanwhile."""
    fetcher = Fetcher(quotas(throttled(RATE), [1])[1], 2, copies(2, 20, PLENTY), seconds_to_begin=0.04)
    paced(run([fetcher], SECONDS))
    assert len(fetcher.began) == 20
    pauses = [after - before for before, after in pairwise(fetcher.began)]
    assert min(pauses) >= 0.04
    assert min(pauses[2:]) >= 0.08, "half of the burst is used"
    assert max(fetcher.began) < START + 3.0
    assert max(copy.longest_wait for copy in fetcher.copies) < 3.0


@pytest.mark.parametrize(("count", "size", "seconds_to_begin"), [(100, 200_000, 0.04), (600, 10_000, 0.001)])
@pytest.mark.parametrize("limits", [throttled(RATE), throttled(RATE, RATE)])
def test_many_small_replicas_move_at_the_rate(
    limits: Limits, count: int, size: int, seconds_to_begin: float
) -> None:
    """Their starts do not slow the move down."""
    fetcher = Fetcher(quotas(limits, [1])[1], 2, copies(2, count, size), seconds_to_begin=seconds_to_begin)
    came = run([fetcher], SECONDS)
    assert sum(size for _, size in came) == count * size
    assert came[-1][0] <= count * size / RATE
    assert max(by_second(came, SECONDS)) <= 2.1 * RATE


def test_small_replicas_move_at_the_rate_of_slow_fetches_too() -> None:
    """A fetch brings what the throttle has, of those that have started."""
    fetcher = Fetcher(quotas(throttled(RATE), [1])[1], 2, copies(2, 40, 500_000), response_seconds=0.15)
    came = run([fetcher], SECONDS)
    assert sum(size for _, size in came) == 40 * 500_000
    assert came[-1][0] <= 0.95 * 40 * 500_000 / RATE


def test_a_throttle_with_bytes_to_spare_for_one_side_only_does_not_hurry() -> None:
    """The follower's limit binds the move, and the leader's has bytes to spare."""
    quota = quotas(throttled(10 * RATE, RATE), [1])[1]
    fetcher = Fetcher(quota, 2, copies(2, 20, PLENTY), seconds_to_begin=0.04)
    paced(run([fetcher], SECONDS))
    pauses = [after - before for before, after in pairwise(fetcher.began)]
    assert min(pauses[2:]) >= 0.08


def test_a_replica_without_records_does_not_block_others_from_starting() -> None:
    behind = copies(2, 10, PLENTY)
    for copy in behind[:5]:
        copy.size = 0
        copy.item.marks.high_watermark = 1000
        copy.broken = True
    came = run([Fetcher(quotas(throttled(RATE), [1])[1], 2, behind)], SECONDS)
    paced(came)
    assert all(copy.offset > 0 for copy in behind[5:])


def test_with_windows_all_replicas_start_at_once() -> None:
    fetcher = Fetcher(quotas(throttled(RATE, algorithm=WINDOW), [1])[1], 2, copies(2, 5, PLENTY))
    run([fetcher], 1)
    assert max(fetcher.began) - min(fetcher.began) < 0.01


@pytest.mark.parametrize("rate", [100_000, 50 * MEBIBYTE])
def test_slow_and_fast_limits(rate: int) -> None:
    came = run([Fetcher(quotas(throttled(rate), [1])[1], 2, copies(2, 8, PLENTY))], SECONDS)
    paced(came, rate)


def test_a_follower_is_limited_over_all_its_leaders() -> None:
    brokers = quotas(throttled(None, RATE), [1, 2, 3])
    fetchers = [Fetcher(brokers[leader], 3, copies(3, 50, PLENTY, first=50 * leader)) for leader in (1, 2)]
    paced(run(fetchers, SECONDS))
    one, other = (sum(copy.offset for copy in fetcher.copies) for fetcher in fetchers)
    assert one == pytest.approx(other, rel=0.3)


def test_a_leader_is_limited_over_all_its_followers() -> None:
    broker = quotas(throttled(RATE), [1])[1]
    fetchers = [Fetcher(broker, node_id, copies(node_id, 20, PLENTY)) for node_id in (2, 3, 4)]
    paced(run(fetchers, SECONDS))
    shares = [sum(copy.offset for copy in fetcher.copies) for fetcher in fetchers]
    assert max(shares) < 1.5 * min(shares), "the first has the second that was saved up"


def test_each_broker_has_its_own_limits() -> None:
    brokers = quotas(throttled(RATE), [1, 2])
    fetchers = [Fetcher(brokers[leader], 3, copies(3, 4, PLENTY, first=10 * leader)) for leader in (1, 2)]
    paced(run(fetchers, SECONDS), 2 * RATE)


def test_no_partition_starves_over_a_minute() -> None:
    fetcher = Fetcher(quotas(throttled(RATE), [1])[1], 2, copies(2, 100, PLENTY, 100_000))
    run([fetcher], 60)
    assert max(copy.longest_wait for copy in fetcher.copies) < 10.0
    assert min(copy.offset for copy in fetcher.copies) > 0


def test_large_batches_are_not_overtaken_by_small_ones() -> None:
    quota = quotas(throttled(RATE), [1])[1]
    large = copies(2, 2, PLENTY, 900_000, first=20)
    fetcher = Fetcher(quota, 2, [*copies(2, 20, PLENTY, 10_000), *large])
    run([fetcher], 30)
    assert max(copy.longest_wait for copy in large) < 5.0
    assert min(copy.offset for copy in large) > 0


def test_partitions_get_equal_rates_whatever_their_batch_size() -> None:
    """Here each batch is all that a fetch may bring of a partition."""
    fetcher = Fetcher(quotas(throttled(RATE), [1])[1], 2, copies(2, 8, PLENTY, 900_000, max_bytes=900_000))
    run([fetcher], SECONDS)
    shares = [copy.offset for copy in fetcher.copies]
    assert max(shares) < 2 * min(shares)


def test_a_reassignment_ends_and_no_replica_stays_omitted() -> None:
    fetcher = Fetcher(quotas(throttled(RATE), [1])[1], 2, copies(2, 4, 10_000_000))
    came = run([fetcher], SECONDS)
    assert sum(size for _, size in came) == 40_000_000
    assert came[-1][0] == pytest.approx(40_000_000 / RATE - 1, abs=0.3)


def test_a_changed_limit_holds_within_a_second() -> None:
    brokers = quotas(throttled(RATE), [1])
    fetcher = Fetcher(brokers[1], 2, copies(2, 8, PLENTY))
    run([fetcher], 10)
    brokers[1].configure(throttled(RATE / 4), fetcher.wakes_at)
    sizes = by_second(run([fetcher], 20), 20)[11:]
    assert statistics.mean(sizes) == pytest.approx(RATE / 4, rel=0.1)


def test_with_windows_a_reassignment_has_bursts() -> None:
    came = run([Fetcher(quotas(throttled(RATE, algorithm=WINDOW), [1])[1], 2, copies(2, 8, PLENTY))], 60)
    assert sum(size for _, size in came) / 60 == pytest.approx(RATE, rel=0.2)
    assert by_second(came, 60).count(0) > 10


def test_a_limit_of_zero_stops_the_move() -> None:
    assert run([Fetcher(quotas(throttled(0), [1])[1], 2, copies(2, 8, PLENTY))], 5) == []


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
