"""A plan of a follower's fetch looks only at replicas about which something has changed. Its result is that
of a simple plan, which looks at every replica (tests/support/simulations/simple_plans.py), whatever happens.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.quota.fetch.follower_plan import FollowerItem, FollowerPlan, SessionState
from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import PACE, WINDOW
from proxy.wire.api_keys import FETCH
from proxy.wire.cursor import NO_ID
from proxy.wire.fetch.rewrite import UNKNOWN, Watermarks
from proxy.wire.views import Item, RequestView, ResponseView
from tests.support.simulations.move import START, TOPIC, quotas, throttled
from tests.support.simulations.simple_plans import SimplePlans

FOLLOWER = 3
LEADERS = (1, 2)
PARTITIONS = range(8)
RATES = (None, 0.0, 2_000.0, 100_000.0)
LISTS = {
    "leader.replication.throttled.replicas": "0:1,1:1,2:1,3:1,6:1,0:2,1:2",
    "follower.replication.throttled.replicas": "2:3,3:3,4:3,6:3",
}
"""Partitions 0 and 1 are throttled on the leader's side, 4 on the follower's, 2, 3 and 6 on both."""
OTHER_LISTS = {"leader.replication.throttled.replicas": "*"}

leaders = st.sampled_from(LEADERS)
partitions = st.sampled_from(PARTITIONS)
happenings = st.one_of(
    st.tuples(
        st.just("fetch"), leaders, st.lists(st.sampled_from([0, 0, 300, 5_000]), min_size=8, max_size=8)
    ),
    st.tuples(st.just("fetch"), leaders, st.just([5_000] * 8)),
    st.tuples(st.just("ask"), leaders),
    st.tuples(st.just("wait"), st.sampled_from([0.001, 0.05, 0.3, 0.6, 61.0])),
    st.tuples(st.just("move"), leaders, partitions),
    st.tuples(st.just("add"), leaders, st.just(0)),
    st.tuples(st.just("drop"), partitions),
    st.tuples(st.just("append"), partitions, st.integers(1, 50)),
    st.tuples(st.just("truncate"), partitions),
    st.tuples(st.just("reconnect"), leaders),
    st.tuples(
        st.just("limits"), st.sampled_from(RATES), st.sampled_from(RATES), st.booleans(), st.booleans()
    ),
    st.tuples(st.just("forget")),
)


Step = tuple[Any, ...]
"""The name of a method of World, and its arguments."""


class World:
    """A follower that fetches from two leaders."""

    def __init__(self, simple: bool) -> None:
        self.simple = {leader: SimplePlans() for leader in LEADERS} if simple else {}
        self.now = START
        self.brokers = quotas(throttled(2_000.0, 2_000.0, topics={TOPIC: LISTS}), LEADERS)
        self.who = {leader: Identity("ANONYMOUS", "", "127.0.0.1") for leader in LEADERS}
        self.items: dict[int, dict[int, FollowerItem]] = {leader: {} for leader in LEADERS}
        self.changed: dict[int, set[FollowerItem]] = {leader: set() for leader in LEADERS}
        """Of each leader's session: the items about which something has changed since the last plan."""
        self.dropped: dict[int, list[FollowerItem]] = {leader: [] for leader in LEADERS}
        self.states: dict[int, SessionState | None] = dict.fromkeys(LEADERS)
        self.ends = dict.fromkeys(PARTITIONS, 100)
        self.offsets = dict.fromkeys(PARTITIONS, 0)
        for partition in PARTITIONS:
            self.add(1, partition)

    def move(self, leader: int, partition: int) -> None:
        """The leader leads the partition from here on."""
        self.drop(partition)
        self.add(leader, partition)

    def add(self, leader: int, partition: int) -> None:
        """The session with a leader has the partition, even if that with another one has it as well."""
        self._remove(leader, partition)
        item = FollowerItem(TOPIC, partition, FOLLOWER, Watermarks())
        item.max_bytes = 1 << 20
        self.items[leader][partition] = item
        self.changed[leader].add(item)

    def _remove(self, leader: int, partition: int) -> None:
        item = self.items[leader].pop(partition, None)
        if item is not None:
            self.changed[leader].discard(item)
            self.dropped[leader].append(item)

    def drop(self, partition: int) -> None:
        for leader in LEADERS:
            self._remove(leader, partition)

    def append(self, partition: int, count: int) -> None:
        self.ends[partition] += count

    def truncate(self, partition: int) -> None:
        self.offsets[partition] = 0

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def reconnect(self, leader: int) -> None:
        self.who[leader] = Identity("ANONYMOUS", "", "127.0.0.1")
        self.states[leader] = None
        if self.simple:
            self.simple[leader] = SimplePlans()
        for partition in list(self.items[leader]):
            self.add(leader, partition)
        self.dropped[leader].clear()

    def limits(self, leader: float | None, follower: float | None, paced: bool, listed: bool) -> None:
        topics = {TOPIC: LISTS if listed else OTHER_LISTS}
        limits = throttled(leader, follower, algorithm=PACE if paced else WINDOW, topics=topics)
        for broker in self.brokers.values():
            broker.configure(limits, self.now)

    def forget(self) -> None:
        for broker in self.brokers.values():
            broker.forget_idle(self.now)

    def ask(self, leader: int) -> FollowerPlan:
        """Plan a fetch."""
        items = self.items[leader]
        for partition, item in items.items():
            if item.fetch_offset != self.offsets[partition]:
                item.fetch_offset = self.offsets[partition]
                self.changed[leader].add(item)
        broker = self.brokers[leader]
        if self.simple:
            plan = FollowerPlan(list(items.values()), [], None)
            self.simple[leader].plan_fetch(broker, plan, self.who[leader], self.now)
        else:
            changed = [item for item in items.values() if item in self.changed[leader]]
            plan = FollowerPlan(changed, self.dropped[leader], self.states[leader])
            broker.plan_follower_fetch(plan, self.who[leader], self.now)
            self.states[leader] = plan.state
        self.dropped[leader] = []
        self.changed[leader].clear()
        return plan

    def fetch(self, leader: int, sizes: list[int]) -> None:
        """Plan a fetch and get its response, with as many bytes of the partitions."""
        self.ask(leader)
        self.now += 0.002
        request = RequestView(FETCH, 17, 1, "", 100)
        request.replica_id = FOLLOWER
        response = ResponseView(17, True, 100, True)
        for partition, item in self.items[leader].items():
            if item.omitted and item.marks.high_watermark != UNKNOWN:
                continue
            self.changed[leader].add(item)
            # An omitted partition is requested for its watermarks.
            item.marks.high_watermark = self.ends[partition]
            if item.omitted:
                continue
            size = min(sizes[partition], (self.ends[partition] - self.offsets[partition]) * 100)
            if size > 0:
                self.offsets[partition] += size // 100
                response.add(Item(TOPIC, NO_ID, partition, size))
        self.brokers[leader].charge(request, response, self.who[leader], self.now)

    def shown(self) -> list[object]:
        """What the plans have decided."""
        shared = self.brokers[1].shared
        items = [
            (leader, item.partition, item.omitted, item.bound)
            for leader, items in self.items.items()
            for item in items.values()
        ]
        replicas = [
            (
                *(replica.partition, replica.in_sync, replica.omitted_since, replica.behind_since),
                *(replica.granted, replica.offset, replica.high_watermark, replica.starts, replica.leader_id),
            )
            for replica in shared.replicas.values()
        ]
        throttles = [
            (
                throttle.role,
                throttle.node_id,
                throttle.omitted,
                throttle.throttled_seconds,
                throttle.bucket.used,
            )
            for throttle in shared.throttles.values()
        ]
        return [*items, *replicas, *throttles]


@settings(max_examples=150)
@given(st.lists(happenings, min_size=30, max_size=60))
def test_a_plan_is_the_same_as_if_every_replica_were_looked_at(steps: list[Step]) -> None:
    world, simple = World(simple=False), World(simple=True)
    for what, *details in steps:
        plan = getattr(world, what)(*details)
        other = getattr(simple, what)(*details)
        if plan is not None:
            assert (plan.omitted, plan.ask_again_at) == (other.omitted, other.ask_again_at)
        assert world.shown() == simple.shown()
