"""Replication quotas: bytes per second that followers fetch of throttled replicas (KIP-73), and the throttle
of whole brokers (KAFKA-7983).

A replica is omitted from a fetch if

    it is throttled on the leader's side, and the leader sends more than its rate, or
    it is throttled on the follower's side, and the follower fetches more than its rate from all leaders,
    and it is not in sync (ReplicaManager.shouldLeaderThrottle, ReplicaFetcherThread.shouldFollowerThrottle).

In-sync replicas are never omitted, but their bytes are charged (KAFKA-4313). Other replicas on the same
connection are not affected: no response is delayed. Bytes are charged when the response arrives. Each fetch
gets as many replicas as the limit has bytes for, in round-robin order and in pieces of whole batches if their
size is known. So the rate of a reassignment is even, and no replica starves. Replicas start one by one
(proxy.quota.kinds.replication.waiter).

A replica is in sync if it has fetched up to the last high watermark that its leader reported on the same
connection. Kafka's followers use this rule (PartitionFetchState.isReplicaInSync), and its leaders use the
ISR. Both have the same result: a high watermark is never beyond the log of a replica in the ISR, and a
replica joins the ISR when it reaches the high watermark. Metadata cannot be used: for a second or more, it
shows a follower in the ISR that was away and is behind.

If no high watermark has been reported, the replica counts as not in sync. When such a replica is omitted, the
broker is asked for its high watermark without records, and responds at once
(proxy.relay.fetch.follower_session). So after a restart of the proxy or of a follower, replicas that are in
sync wait for one fetch at most.
"""

from typing import Final, cast, final

from proxy.quota.cluster_view import ClusterView
from proxy.quota.fetch.follower_plan import FollowerItem, FollowerPlan
from proxy.quota.identity import Identity
from proxy.quota.kinds.replication.division import Division
from proxy.quota.kinds.replication.fetch_budget import FetchBudget
from proxy.quota.kinds.replication.grants import Grants
from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.state import ReplicationState
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
from proxy.quota.measure.first_parts import FirstParts
from proxy.quota.quota import PER_BROKER, Quota, QuotaKind
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.api_keys import FETCH
from proxy.wire.views import Item, RequestView, ResponseView

FORGET_SECONDS: Final = 60.0
"""A follower fetches each of its replicas at least every replica.fetch.wait.max.ms (0.5 s): one not seen for
a minute is gone, or has another leader."""


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
        self._divide(plan, session, who, now)
        self._omit(plan, session, decided, now)

    def _decide_about(self, plan: FollowerPlan, session: WaitingReplicas, now: float) -> list[FollowerItem]:
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

    def _look_at(self, item: FollowerItem, session: WaitingReplicas, now: float) -> None:
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

    def _replica(self, item: FollowerItem, session: WaitingReplicas, now: float) -> Replica:
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

    def _divide(self, plan: FollowerPlan, session: WaitingReplicas, who: Identity, now: float) -> None:
        """Grant the fetch the bytes that the throttles have for it."""
        waiter = self._shared.waiter(who)
        waiter.fetches(now)
        budget = FetchBudget(self._shared.ahead(waiter, now), now)
        grants = Division(plan, session, waiter, budget, now).divide()
        if grants.replicas:
            self._grants[who] = grants

    def _omit(
        self, plan: FollowerPlan, session: WaitingReplicas, decided: list[FollowerItem], now: float
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

    def _take_back(self, who: Identity, now: float) -> Grants | None:
        """End a connection's fetch, which got its response or is planned again: release what was reserved."""
        grants = self._grants.pop(who, None)
        if grants is not None:
            grants.release(now)
        return grants

    def charge(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> Verdict:
        if request.replica_id < 0:
            return ALLOW
        grants = self._take_back(who, now)
        self._record(request, response.items, who, now)
        if grants is not None:
            if not response.partial:
                grants.learn(response.items)
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

    def begin_with(self, first_parts: FirstParts) -> None:
        self._shared.begin_with(self.node_id, first_parts)

    def forget_idle(self, now: float) -> bool:
        replicas = self._shared.replicas
        for key in [key for key, replica in replicas.items() if now - replica.seen_at > FORGET_SECONDS]:
            replicas.pop(key).forgotten = True
        for who in [who for who, grants in self._grants.items() if now - grants.since > FORGET_SECONDS]:
            # The connection is closed: no response will use what was granted.
            gone = self._take_back(who, now)
            if gone is not None:
                gone.end()
        return False


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
    scope=PER_BROKER,
    build=Replication,
    configs=CONFIGS,
    between_brokers=True,
)
