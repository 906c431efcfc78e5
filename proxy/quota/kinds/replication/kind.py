"""Replication quotas: bytes per second that followers fetch of throttled replicas (KIP-73), and the throttle
of whole brokers (KAFKA-7983).

A replica is omitted from a fetch if

    it is throttled on the leader's side, and the leader sends more than its rate, or
    it is throttled on the follower's side, and the follower fetches more than its rate from all leaders,
    and it is not in sync (ReplicaManager.shouldLeaderThrottle, ReplicaFetcherThread.shouldFollowerThrottle).

In-sync replicas are never omitted, but their bytes are charged (KAFKA-4313). Other replicas on the same
connection are not affected: no response is delayed. Bytes are charged when the response arrives. Each fetch
gets as many replicas as the limit has bytes for, in round-robin order and in pieces of whole batches if their
size is known. So the rate of a reassignment is even, and no replica starves. Replicas start one by one (see
Waiter).

A replica is in sync if it has fetched up to the last high watermark that its leader reported on the same
connection. Kafka's followers use this rule (PartitionFetchState.isReplicaInSync), and its leaders use the
ISR. Both have the same result: a high watermark is never beyond the log of a replica in the ISR, and a
replica joins the ISR when it reaches the high watermark. Metadata cannot be used: for a second or more, it
shows a follower in the ISR that was away and is behind.

If no high watermark has been reported, the replica counts as not in sync. When such a replica is omitted, the
broker is asked for its high watermark without records, and responds at once (proxy.relay.fetch.session). So
after a restart of the proxy or of a follower, replicas that are in sync wait for one fetch at most.
"""

from typing import Final, final

from proxy.quota.cluster_view import ClusterView
from proxy.quota.fetch_plan import NO_BOUND, FetchItem, FetchPlan
from proxy.quota.identity import Identity
from proxy.quota.kinds.replication.fetch_budget import FetchBudget
from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.state import ReplicationState, Waiter
from proxy.quota.kinds.replication.throttle import Throttle
from proxy.quota.limits.config_keys import (
    FOLLOWER_THROTTLED,
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
)
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket
from proxy.quota.quota import PER_BROKER, Quota, QuotaKind
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.api_keys import FETCH
from proxy.wire.views import Item, RequestView, ResponseView

PIECE_BYTES: Final = 64 << 10
"""The smallest grant of a fetch's second and later replicas. Each replica in a response costs the broker a
read, so smaller pieces would make a fetch of many replicas slow; larger ones would make the rate less
even."""
SEE_AGAIN_SECONDS: Final = 0.5
"""For how long a plan takes an omitted replica for unchanged without noting that its follower fetches it."""
FORGET_SECONDS: Final = 60.0
"""A follower fetches each of its replicas at least every replica.fetch.wait.max.ms (0.5 s): one not seen for
a minute is gone, or has another leader."""


@final
class Grants:
    """The grants of a connection's fetch that is in flight."""

    __slots__ = ("replicas", "reserved", "since")

    def __init__(self, now: float) -> None:
        self.since: Final = now
        self.replicas: Final[list[Replica]] = []
        self.reserved: Final[dict[Throttle, int]] = {}

    def end(self) -> None:
        for replica in self.replicas:
            replica.granted = 0


@final
class Replication(Quota):
    """The fetches of one broker's followers."""

    def __init__(self) -> None:
        super().__init__((FETCH,))
        self._shared = ReplicationState()
        self._grants: Final[dict[Identity, Grants]] = {}
        """By connection: a follower has one fetch in flight."""
        self.active = False

    @property
    def shared(self) -> ReplicationState:
        """The state that it shares with the quotas of other brokers."""
        return self._shared

    def join(self, node_id: int, peers: list[Quota]) -> None:
        self.node_id = node_id
        for peer in peers:
            if isinstance(peer, Replication):
                self._shared = peer.shared

    def configure(self, limits: Limits, now: float) -> None:
        shared = self._shared
        shared.configure(limits, now)
        self.active = shared.active
        self.omits = self.active
        self.item_api_keys = self.api_keys if self.active else ()

    def see_cluster(self, view: ClusterView, now: float) -> None:
        self._shared.view = view

    def may_omit(self, topic: str, partition: int, replica_id: int, who: Identity) -> bool:
        if replica_id < 0:
            return False
        return len(self._shared.enforced_throttles(self.node_id, replica_id, topic, partition, 0.0)) > 0

    def plan_fetch(self, plan: FetchPlan, who: Identity, now: float) -> None:
        before = self._take_back(who, now)
        if before is not None:
            before.end()
        waiting: list[Replica] = []
        items: list[FetchItem] = []
        generation = self._shared.generation
        for item in plan.items:
            state = item.state
            if (
                isinstance(state, Replica)
                and state.omitted_since > 0.0
                and state.offset == item.fetch_offset
                and state.high_watermark == item.marks.high_watermark
                and state.generation == generation
                and state.leader_id == self.node_id
                and now - state.seen_at < SEE_AGAIN_SECONDS
                and not state.forgotten
            ):
                # Nearly all replicas of a large move: omitted by the last plan, and unchanged since.
                waiting.append(state)
                items.append(item)
                continue
            replica = self._replica(item, now)
            if not replica.throttles:
                replica.omitted_since = 0.0
                continue
            replica.in_sync = replica.caught_up
            if replica.in_sync:
                replica.behind_since = replica.omitted_since = 0.0
            else:
                if replica.behind_since == 0.0:
                    replica.behind_since = now
                waiting.append(replica)
                items.append(item)
        if not waiting:
            return
        waiter = self._shared.waiter(who)
        waiter.fetches(now)
        self._share_out(plan, items, waiting, who, waiter, now)

    def _replica(self, item: FetchItem, now: float) -> Replica:
        shared = self._shared
        state = item.state
        if isinstance(state, Replica) and not state.forgotten:
            replica = state
        else:
            replica = shared.replica((item.replica_id, item.topic, item.partition), now)
            item.state = replica
        if replica.leader_id != self.node_id or replica.generation != shared.generation:
            replica.leader_id, replica.generation = self.node_id, shared.generation
            replica.throttles = shared.enforced_throttles(
                self.node_id, item.replica_id, item.topic, item.partition, now
            )
        replica.see(item, now)
        return replica

    def _share_out(
        self,
        plan: FetchPlan,
        items: list[FetchItem],
        replicas: list[Replica],
        who: Identity,
        waiter: Waiter,
        now: float,
    ) -> None:
        """Grant bytes to as many replicas as there are bytes for, in order, and omit the others."""
        grants = Grants(now)
        paced = self._shared.limits.settings.algorithm.paced
        budget = FetchBudget(self._shared.ahead(waiter, now), now)
        starts = _starts(items, replicas, waiter, now)
        # Those that wait for their start leave the bytes to the others.
        served = len(replicas) - (max(_new(replicas) - starts, 0) if paced else 0)
        start_at = waiter.start_at(now)
        for at, replica in enumerate(replicas):
            item = items[at]
            new = paced and replica.bytes == 0
            if new and starts == 0:
                plan.omit(item, start_at)
                if replica.omitted_since == 0.0:
                    replica.omit([], now)
                continue
            if replica.throttles is budget.exhausted_for and replica.omitted_since > 0.0:
                # As the replica before: its throttles have counted this time, and plan.omit() has its end.
                plan.omit(item, plan.ask_again_at)
                continue
            lacking = budget.lacking(replica, PIECE_BYTES if grants.replicas else 0)
            if lacking:
                plan.omit(item, budget.ready_at)
                replica.omit(lacking, now)
                continue
            replica.omitted_since = 0.0
            if new:
                waiter.start(now)
                starts -= 1
            share = max(budget.left / max(served, 1), PIECE_BYTES)
            served -= 1
            self._grant(plan, item, replica, min(budget.left, share, item.max_bytes), grants, now)
        waiter.throttles = list(budget.exhausted)
        waiter.ready_at = min(budget.exhausted.values(), default=now)
        if grants.replicas:
            self._grants[who] = grants
            waiter.served_at = now

    def _grant(
        self,
        plan: FetchPlan,
        item: FetchItem,
        replica: Replica,
        size: float,
        grants: Grants,
        now: float,
    ) -> None:
        granted = min(replica.fit(size), item.max_bytes)
        plan.bound(item, granted)
        if item.bound == NO_BOUND:
            # NO_BOUND would mean that the replica was not served: the next plan would start with it again.
            item.bound = item.max_bytes
        replica.granted = granted
        grants.replicas.append(replica)
        for throttle in replica.throttles:
            throttle.reserve(granted, now)
            grants.reserved[throttle] = grants.reserved.get(throttle, 0) + granted

    def _take_back(self, who: Identity, now: float) -> Grants | None:
        """End a connection's fetch, which got its response or is planned again: release what was reserved."""
        grants = self._grants.pop(who, None)
        if grants is not None:
            for throttle, size in grants.reserved.items():
                throttle.reserve(-size, now)
        return grants

    def charge(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> Verdict:
        if request.replica_id < 0:
            return ALLOW
        grants = self._take_back(who, now)
        self._record(request, response.items, who, now)
        if grants is not None:
            if not response.partial:
                _learn(grants, response.items)
            grants.end()
        return ALLOW

    def charge_items(self, request: RequestView, items: list[Item], who: Identity, now: float) -> Verdict:
        if request.replica_id >= 0:
            self._record(request, items, who, now)
        return ALLOW

    def _record(self, request: RequestView, items: list[Item], who: Identity, now: float) -> None:
        shared = self._shared
        follower = request.replica_id
        began = 0
        for item in items:
            if item.size > 0 and item.topic:
                replica = shared.replicas.get((follower, item.topic, item.partition))
                in_sync = replica is None or replica.in_sync
                for throttle in shared.throttles_of(self.node_id, follower, item.topic, item.partition, now):
                    throttle.record(item.size, in_sync, now)
                if replica is not None:
                    began += replica.starts
                    replica.got(item.size)
        if began > 0:
            shared.waiter(who).began(began)

    def shared_buckets(self, now: float) -> list[Bucket]:
        return self._shared.shared_buckets(self.node_id, now)

    def begin_with(self, part: float) -> None:
        self._shared.begin_with(part)

    def forget_idle(self, now: float) -> None:
        replicas = self._shared.replicas
        for key in [key for key, replica in replicas.items() if now - replica.seen_at > FORGET_SECONDS]:
            replicas.pop(key).forgotten = True
        for who in [who for who, grants in self._grants.items() if now - grants.since > FORGET_SECONDS]:
            # The connection is closed: no response will use what was granted.
            gone = self._take_back(who, now)
            if gone is not None:
                gone.end()


def _starts(items: list[FetchItem], replicas: list[Replica], waiter: Waiter, now: float) -> int:
    """Return how many replicas may start. If any may, the first that has not started moves to the front, so
    that the others cannot starve it.
    """
    for at, replica in enumerate(replicas):
        if not replica.starts:
            continue
        spare = True
        for throttle in replica.throttles:
            spare = spare and throttle.has_spare(now)
        starts = waiter.starts(now, spare)
        if starts > 0:
            items.insert(0, items.pop(at))
            replicas.insert(0, replicas.pop(at))
        return starts
    return 0


def _new(replicas: list[Replica]) -> int:
    """The number of replicas that have not started."""
    count = 0
    for replica in replicas:
        count += replica.bytes == 0
    return count


def _learn(grants: Grants, items: list[Item]) -> None:
    """Grant more next time to replicas that got nothing although they lack messages: their next batch is
    larger than the grant.
    """
    came = {(item.topic, item.partition) for item in items if item.size > 0}
    for replica in grants.replicas:
        if replica.lag > 0 and (replica.topic, replica.partition) not in came:
            replica.got_nothing()


NATIVE: Final = (
    LEADER_THROTTLED_REPLICAS,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_RATE,
)
"""The configs that every broker knows and can enforce."""
CONFIGS: Final = (*NATIVE, LEADER_THROTTLED, FOLLOWER_THROTTLED)
KIND: Final = QuotaKind(
    name="replication",
    keys=(),
    api_keys=(FETCH,),
    scope=PER_BROKER,
    build=Replication,
    configs=CONFIGS,
    between_brokers=True,
)
