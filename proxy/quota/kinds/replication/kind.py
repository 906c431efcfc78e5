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

from typing import Final, cast, final

from proxy.quota.cluster_view import ClusterView
from proxy.quota.fetch_plan import FetchItem
from proxy.quota.follower_plan import FollowerPlan
from proxy.quota.identity import Identity
from proxy.quota.kinds.replication.fetch_budget import FetchBudget
from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.state import ReplicationState, Waiter
from proxy.quota.kinds.replication.throttle import Throttle
from proxy.quota.kinds.replication.waiting_replicas import WaitingReplicas
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
FORGET_SECONDS: Final = 60.0
"""A follower fetches each of its replicas at least every replica.fetch.wait.max.ms (0.5 s): one not seen for
a minute is gone, or has another leader."""


@final
class Grants:
    """The grants of a connection's fetch that is in flight.

    since: when they were made, on the clock of `now`.
    replicas: those that were granted bytes.
    reserved: the bytes that are reserved, by throttle.
    """

    __slots__ = ("replicas", "reserved", "since")

    def __init__(self, now: float) -> None:
        self.since: Final = now
        self.replicas: Final[list[Replica]] = []
        self.reserved: Final[dict[Throttle, int]] = {}

    def end(self) -> None:
        """Note that the fetch has got its response, or is planned again."""
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

    def plan_follower_fetch(self, plan: FollowerPlan, who: Identity, now: float) -> None:
        before = self._take_back(who, now)
        if before is not None:
            before.end()
        state = plan.state
        session = state if isinstance(state, WaitingReplicas) else WaitingReplicas()
        plan.state = session
        decided = self._decide_about(plan, session, now)
        for item in decided:
            self._look_at(item, session, now)
        session.seen_at = now
        if session.size == 0:
            return
        waiter = self._shared.waiter(who)
        waiter.fetches(now)
        self._share_out(plan, session, who, waiter, now)
        self._omit(plan, session, decided, now)

    def _decide_about(self, plan: FollowerPlan, session: WaitingReplicas, now: float) -> list[FetchItem]:
        """Return the items about which a plan decides anew. Those that got bytes last come first, so they
        join a queue before items that have changed since, and all take turns.
        """
        for item in plan.dropped:
            session.drop(item)
        generation = self._shared.generation
        if session.generation == generation and now - session.seen_at < FORGET_SECONDS:
            again = session.take_again()
        else:
            again = session.start_anew()
            session.generation = generation
        for item in again:
            plan.include(item)
        if not again:
            return plan.items
        known = set(again)
        return again + [item for item in plan.items if item not in known]

    def _look_at(self, item: FetchItem, session: WaitingReplicas, now: float) -> None:
        """Update a replica from its item, and put it into a queue if it is throttled and not in sync."""
        replica = self._replica(item, session, now)
        if not replica.throttles:
            replica.omitted_since = 0.0
            session.leave(item)
            return
        replica.in_sync = replica.caught_up
        if replica.in_sync:
            replica.behind_since = replica.omitted_since = 0.0
            session.leave(item)
            return
        if replica.behind_since == 0.0:
            replica.behind_since = now
        paced = self._shared.limits.settings.algorithm.paced
        session.wait(item, replica.throttles, paced and replica.starts)

    def _replica(self, item: FetchItem, session: WaitingReplicas, now: float) -> Replica:
        shared = self._shared
        state = item.state
        if isinstance(state, Replica) and not state.forgotten:
            replica = state
        else:
            replica = shared.replica((item.replica_id, item.topic, item.partition), now)
            item.state = replica
        replica.enter(session, item)
        if replica.leader_id != self.node_id or replica.generation != shared.generation:
            replica.leader_id, replica.generation = self.node_id, shared.generation
            replica.throttles = shared.enforced_throttles(
                self.node_id, item.replica_id, item.topic, item.partition, now
            )
        replica.see(item, now)
        return replica

    def _share_out(
        self, plan: FollowerPlan, session: WaitingReplicas, who: Identity, waiter: Waiter, now: float
    ) -> None:
        """Grant bytes to as many replicas as there are bytes for, in order."""
        grants = Grants(now)
        budget = FetchBudget(self._shared.ahead(waiter, now), now)
        session.open()
        # The first that has not started goes before all others, so that they cannot starve it.
        first = session.next_new()
        waiter.starting = first is not None
        starts = 0 if first is None else _starts(first.throttles, waiter, now)
        if starts == 0:
            first = None
        # Replicas that may not start yet get no bytes, so the others divide all of them.
        served = session.size - max(session.new - starts, 0)
        while True:
            queue = session.next() if first is None else first
            if queue is None:
                break
            first = None
            if queue.new and starts == 0:
                queue.closed = True
                plan.ask_at(waiter.start_at(now))
                continue
            item = queue.first
            replica = cast("Replica", item.state)
            queue.lacking = budget.lacking(replica, PIECE_BYTES if grants.replicas else 0)
            if queue.lacking:
                queue.closed = True
                plan.ask_at(budget.ready_at)
                continue
            if queue.new:
                waiter.start(now)
                starts -= 1
            if item.omitted:
                plan.include(item)
            replica.omitted_since = 0.0
            share = max(budget.left / max(served, 1), PIECE_BYTES)
            served -= 1
            self._grant(plan, item, replica, min(budget.left, share, item.max_bytes), grants, now)
            session.leave(item)
            session.again[item] = None
            queue.closed = len(queue.places) == 0
        waiter.throttles = list(budget.exhausted)
        waiter.ready_at = min(budget.exhausted.values(), default=now)
        if grants.replicas:
            self._grants[who] = grants
            waiter.served_at = now

    def _omit(
        self, plan: FollowerPlan, session: WaitingReplicas, decided: list[FetchItem], now: float
    ) -> None:
        """Omit the replicas that still wait. Most of them have been omitted before."""
        plan.omit_more(session.size)
        for queue in session.queues:
            if queue.places:
                for throttle in queue.lacking:
                    throttle.count_omission(now)
        for item in decided:
            queue_of = session.queue_of(item)
            if queue_of is not None:
                item.omitted = True
                replica = cast("Replica", item.state)
                replica.omit(queue_of.lacking, now)

    def _grant(
        self,
        plan: FollowerPlan,
        item: FetchItem,
        replica: Replica,
        size: float,
        grants: Grants,
        now: float,
    ) -> None:
        granted = min(replica.fit(size), item.max_bytes)
        # With a bound of its own, the replica counts as served.
        plan.grant(item, granted)
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


def _starts(throttles: list[Throttle], waiter: Waiter, now: float) -> int:
    """Return how many replicas with these throttles may start with the next fetch."""
    spare = True
    for throttle in throttles:
        if not throttle.has_spare(now):
            waiter.lacked[throttle] = now
            spare = False
    return waiter.starts(now, spare)


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
