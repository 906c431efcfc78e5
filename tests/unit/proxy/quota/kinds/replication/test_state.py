"""The state that the replication quotas of all brokers share; test_kind.py has whole reassignments."""

import pytest

from proxy.quota.cluster_view import ClusterView
from proxy.quota.fetch.follower_plan import FollowerItem
from proxy.quota.identity import Identity
from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.state import SEEN_SECONDS, ReplicationState, ThrottleState
from proxy.quota.kinds.replication.throttle import FOLLOWER, LEADER, Throttle
from proxy.quota.kinds.replication.waiter import GRACE_SECONDS, Waiter
from proxy.quota.limits.enforcement import OBSERVE, UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.wire.addresses import BrokerAddress
from proxy.wire.fetch.rewrite import Watermarks
from tests.support.quotas.enforcement import enforcement
from tests.support.sharing.members import a_quarter
from tests.support.simulations.move import START, TOPIC, throttled


def state(limits: Limits) -> ReplicationState:
    made = ReplicationState()
    made.configure(limits, START)
    return made


def sides(throttles: list[Throttle]) -> list[tuple[str, int]]:
    return [(throttle.role, throttle.node_id) for throttle in throttles]


def replica(
    shared: ReplicationState,
    follower: int = 2,
    partition: int = 0,
    *,
    offset: int = 0,
    high_watermark: int = 100,
    now: float = START,
) -> Replica:
    """A replica whose leader is broker 1, after a fetch from this offset."""
    made = Replica((follower, TOPIC, partition), now)
    made.throttles = shared.enforced_throttles(1, follower, TOPIC, partition, now)
    marks = Watermarks()
    marks.high_watermark = high_watermark
    item = FollowerItem(TOPIC, partition, follower, marks)
    item.fetch_offset = offset
    made.see(item, now)
    made.in_sync = made.caught_up
    shared.replicas[follower, TOPIC, partition] = made
    return made


class TestThrottles:
    @pytest.mark.parametrize(
        ("limits", "found"),
        [
            (throttled(1000), [(LEADER, 1)]),
            (throttled(None, 1000), [(FOLLOWER, 2)]),
            (throttled(1000, 1000), [(LEADER, 1), (FOLLOWER, 2)]),
            (throttled(), []),
            (throttled(1000, topics={}), []),
        ],
    )
    def test_a_replica_has_those_of_its_leader_and_its_follower(
        self, limits: Limits, found: list[tuple[str, int]]
    ) -> None:
        shared = state(limits)
        assert sides(shared.throttles_of(1, 2, TOPIC, 0, START)) == found
        assert shared.active == bool(found)

    def test_brokers_share_the_followers_throttle(self) -> None:
        shared = state(throttled(1000, 1000))
        (_, from_first), (_, from_third) = (
            shared.throttles_of(leader, 2, TOPIC, 0, START) for leader in (1, 3)
        )
        assert from_first is from_third

    def test_an_observed_throttle_omits_nothing(self) -> None:
        limits = throttled(1000, 1000)
        modes = {"leader.replication.throttled.rate": OBSERVE}
        shared = state(Limits({}, resources=limits.resources, settings=enforcement(modes=modes)))
        assert sides(shared.throttles_of(1, 2, TOPIC, 0, START)) == [(LEADER, 1), (FOLLOWER, 2)]
        assert sides(shared.enforced_throttles(1, 2, TOPIC, 0, START)) == [(FOLLOWER, 2)]

    def test_limits_that_others_share_begin_with_a_part(self) -> None:
        shared = state(Limits({}))
        before = shared.throttle(LEADER, 1, START)
        for node_id in (1, 2):
            shared.begin_with(node_id, a_quarter(node_id))
        shared.configure(throttled(1000, 1000), START)
        for throttle in (before, shared.throttle(FOLLOWER, 2, START)):
            assert (throttle.limit, throttle.whole_limit) == (250, 1000)

    def test_new_limits_apply_to_throttles_that_there_are(self) -> None:
        """The same limits again change nothing: replicas keep their throttles."""
        limits = throttled(1000)
        shared = state(limits)
        throttle = shared.throttle(LEADER, 1, START)
        generation = shared.generation
        shared.configure(limits, START + 1)
        assert shared.generation == generation
        shared.configure(throttled(2000), START + 1)
        assert shared.generation == generation + 1
        assert shared.throttle(LEADER, 1, START + 1) is throttle
        assert throttle.limit == 2000
        shared.configure(throttled(), START + 2)
        assert throttle.limit == UNLIMITED


class TestTurns:
    """Connections that have waited longer come first."""

    def waiters(self, shared: ReplicationState, *served_at: float) -> tuple[Throttle, list[Waiter]]:
        throttle = shared.throttle(LEADER, 1, START)
        made = []
        for number, at in enumerate(served_at):
            waiter = shared.waiter(Identity("u", "", f"10.0.0.{number}"))
            waiter.served_at, waiter.ready_at, waiter.throttles = at, START, [throttle]
            made.append(waiter)
        return throttle, made

    def test_a_connection_has_one_waiter(self) -> None:
        shared = state(throttled(1000))
        who = Identity("u", "", "10.0.0.1")
        assert shared.waiter(who) is shared.waiter(who)
        assert shared.waiter(Identity("u", "", "10.0.0.1")) is not shared.waiter(who)

    def test_those_served_earlier_are_ahead(self) -> None:
        shared = state(throttled(1000))
        throttle, (first, second, third) = self.waiters(shared, 1.0, 2.0, 3.0)
        assert [shared.ahead(waiter, START).get(throttle, 0) for waiter in (first, second, third)] == [
            0,
            1,
            2,
        ]

    def test_only_those_that_lack_bytes_of_the_same_throttle(self) -> None:
        shared = state(throttled(1000, 1000))
        throttle, (first, second) = self.waiters(shared, 1.0, 2.0)
        other = shared.throttle(FOLLOWER, 2, START)
        first.throttles = [other]
        assert shared.ahead(second, START) == {other: 1}
        assert throttle not in shared.ahead(second, START)

    def test_a_connection_that_does_not_come_loses_its_turn(self) -> None:
        shared = state(throttled(1000))
        throttle, (_, second) = self.waiters(shared, 1.0, 2.0)
        second.ready_at = START + 10
        assert shared.ahead(second, START + GRACE_SECONDS) == {throttle: 1}
        assert shared.ahead(second, START + GRACE_SECONDS + 0.1) == {}


class TestReport:
    def reported(self, shared: ReplicationState, now: float = START) -> dict[tuple[str, int], ThrottleState]:
        return {(found.role, found.node_id): found for found in shared.report(now)}

    def test_every_broker_has_both_sides(self) -> None:
        shared = state(throttled(1000))
        shared.view = ClusterView("c", {node: BrokerAddress(node, "h", 1) for node in (1, 2)}, {})
        found = self.reported(shared)
        assert set(found) == {(role, node) for role in (LEADER, FOLLOWER) for node in (1, 2)}
        assert [found[role, 1].limited for role in (LEADER, FOLLOWER)] == [True, False]

    def test_replicas_that_are_behind_are_added_up(self) -> None:
        shared = state(throttled(1000))
        late = replica(shared, 2, 0, offset=40)
        late.behind_since = START - 3
        later = replica(shared, 3, 0, offset=70)
        later.behind_since = START - 1
        later.omit([shared.throttle(LEADER, 1, START)], START)
        replica(shared, 2, 1, offset=100)
        found = self.reported(shared)[LEADER, 1]
        assert (found.behind, found.omitted_replicas, found.lag) == (2, 1, 90)
        assert found.since == START - 3

    def test_a_replica_that_has_not_fetched_lately_does_not_count(self) -> None:
        shared = state(throttled(1000))
        replica(shared, offset=40)
        assert self.reported(shared, START + SEEN_SECONDS)[LEADER, 1].behind == 1
        assert self.reported(shared, START + SEEN_SECONDS + 0.1)[LEADER, 1].behind == 0

    @pytest.mark.parametrize(("offset", "too_low"), [(40, True), (100, False)])
    def test_a_limit_below_what_comes_in_is_too_low(self, offset: int, too_low: bool) -> None:
        """As many bytes of in-sync replicas come in as the limit has."""
        shared = state(throttled(1000))
        shared.throttle(LEADER, 1, START).record(100_000, True, START)
        replica(shared, offset=offset)
        found = self.reported(shared, START + 0.5)[LEADER, 1]
        assert found.inbound >= 1000
        assert found.too_low == too_low
