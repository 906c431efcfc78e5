"""SimplePlans: the plans of a follower's session, as simple as the rules are. Each looks at every replica.

1. A replica waits if it is throttled and not in sync. Replicas wait in a list. One that begins to wait joins
   at the end, and so does one whose throttles have changed, or that has got its first bytes.
2. In this order, each gets bytes if all of its throttles have enough; then it leaves the list. If one
   gets none, those behind it with the same throttles get none, either.
3. Of the replicas that have fetched nothing yet, only as many start as their connection's Waiter allows,
   and if any may, the first of them goes before all others.
"""

from proxy.quota.fetch.follower_plan import FollowerItem, FollowerPlan
from proxy.quota.identity import Identity
from proxy.quota.kinds.replication.division import PIECE_BYTES
from proxy.quota.kinds.replication.fetch_budget import FetchBudget
from proxy.quota.kinds.replication.grants import Grants
from proxy.quota.kinds.replication.kind import FORGET_SECONDS, Replication
from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.state import ReplicationState
from proxy.quota.kinds.replication.throttle import Throttle

Group = tuple[tuple[Throttle, ...], bool]
"""The throttles of a replica, and whether it has to wait for its start."""


class SimplePlans:
    """The plans of one session."""

    def __init__(self) -> None:
        self.waiting: dict[FollowerItem, Group] = {}
        self.granted: list[FollowerItem] = []
        self.generation = -1
        self.planned_at = 0.0

    def plan_fetch(self, quota: Replication, plan: FollowerPlan, who: Identity, now: float) -> None:
        shared = quota.shared
        before = quota._take_back(who, now)
        if before is not None:
            before.end()
        if self.generation != shared.generation or now - self.planned_at >= FORGET_SECONDS:
            # All join anew, those that wait in their order.
            first, self.waiting = list(self.waiting), {}
        else:
            first = self.granted
        self.generation, self.planned_at = shared.generation, now
        items = {**dict.fromkeys(first), **dict.fromkeys(plan.items)}
        for item in [item for item in self.waiting if item not in plan.items]:
            del self.waiting[item]
        for item in [item for item in items if item in plan.items]:
            self._look_at(quota, item, now)
        self.granted = []
        if self.waiting:
            self._share_out(quota, plan, who, now)

    def _look_at(self, quota: Replication, item: FollowerItem, now: float) -> None:
        shared = quota.shared
        replica = shared.replica((item.replica_id, item.topic, item.partition), now)
        item.state = replica
        replica._seen_at = now
        replica.leader_id = quota.node_id
        replica.throttles = shared.enforced_throttles(
            quota.node_id, item.replica_id, item.topic, item.partition, now
        )
        replica.see(item, now)
        if replica.throttles:
            replica.in_sync = replica.caught_up
        if not replica.throttles or replica.in_sync:
            replica.omitted_since = 0.0
            if replica.throttles:
                replica.behind_since = 0.0
            self.waiting.pop(item, None)
            return
        replica.behind_since = replica.behind_since or now
        group = (tuple(replica.throttles), _paced(shared) and replica.starts)
        if self.waiting.get(item) != group:
            self.waiting.pop(item, None)
            self.waiting[item] = group

    def _share_out(self, quota: Replication, plan: FollowerPlan, who: Identity, now: float) -> None:
        waiter = quota.shared.waiter(who)
        waiter.fetches(now)
        budget = FetchBudget(quota.shared.ahead(waiter, now), now)
        new = [item for item, group in self.waiting.items() if group[1]]
        starts = 0
        if new:
            throttles = self.waiting[new[0]][0]
            starts = waiter.starts(now, all(budget.has_spare(throttle) for throttle in throttles))
        order = [*new[:1], *self.waiting] if starts else list(self.waiting)
        served = len(self.waiting) - max(len(new) - starts, 0)
        grants = Grants(now)
        lacking: dict[Group, list[Throttle]] = {}
        for item in dict.fromkeys(order):
            replica = item.state
            assert isinstance(replica, Replica)
            group = self.waiting[item]
            if group not in lacking and group[1] and starts == 0:
                lacking[group] = []
                plan.ask_at(waiter.start_at(now))
            elif group not in lacking:
                least = PIECE_BYTES if grants.replicas else 0
                found = budget.lacking(replica, least)
                if found:
                    lacking[group] = found
                    plan.ask_at(budget.ready_at)
            if group in lacking:
                plan.omit(item, plan.ask_again_at)
                replica.omit(lacking[group], now)
                continue
            if group[1]:
                waiter.start(now)
                starts -= 1
            replica.omitted_since = 0.0
            share = max(budget.left / max(served, 1), PIECE_BYTES)
            served -= 1
            grants.add(plan, item, min(budget.left, share, item.max_bytes), now)
            del self.waiting[item]
            self.granted.append(item)
        waiter.throttles = list(budget.exhausted)
        waiter.ready_at = min(budget.exhausted.values(), default=now)
        if grants.replicas:
            quota._grants[who] = grants
            waiter.served_at = now


def _paced(shared: ReplicationState) -> bool:
    return shared.limits.settings.algorithm.paced
