"""Replication quotas: what followers may fetch of throttled replicas (KIP-73), and the whole-broker throttle
(KAFKA-7983).

    held back if   throttled on the leader's side, and what the leader sends is over its rate, or
                   throttled on the follower's side, and what the follower fetches of all leaders is over its,
    and            the replica is not in sync

A replica in sync is never held back, but its bytes count (KAFKA-4313). What is held back is left out of the
fetch, so the others on the same connection keep their speed; no answer is delayed. What comes is recorded
after the answer. Replicas take turns: each fetch lets in as many as the limit has bytes for, in pieces of
whole batches where their size is known, so that a move is as even as the limit, and none waits for ever. They
begin one by one (see Waiter).

A replica is in sync if the cluster's metadata says so, or it has fetched up to the high watermark that its
leader last told it. Where nobody has said anything for two seconds, it is taken to be.
"""

from typing import Final, final

from proxy.quota.cluster_view import ClusterView
from proxy.quota.fetch_plan import NO_BOUND, FetchItem, FetchPlan
from proxy.quota.identity import Identity
from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.round import Round
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
from proxy.quota.quota import PER_BROKER, Quota, QuotaKind
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.api_keys import FETCH
from proxy.wire.views import Item, RequestView, ResponseView

PIECE_BYTES: Final = 64 << 10
"""No replica is let in for less where there is enough for others as well."""
FORGET_SECONDS: Final = 60.0


@final
class Grants:
    """What the fetch that is under way on one connection was granted."""

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
    """What one broker sends to its followers."""

    def __init__(self) -> None:
        super().__init__((FETCH,))
        self._shared = ReplicationState()
        self._grants: Final[dict[Identity, Grants]] = {}
        """By connection; one fetch is under way at a time."""
        self.active = False

    @property
    def shared(self) -> ReplicationState:
        """What it knows together with its fellows."""
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
        self.wants_partitions = self.omits = self.active
        self.item_api_keys = self.api_keys if self.active else ()

    def see_cluster(self, view: ClusterView, now: float) -> None:
        if view.has_partitions:
            self._shared.view = view

    def may_omit(self, topic: str, partition: int, replica_id: int, who: Identity) -> bool:
        if replica_id < 0:
            return False
        return len(self._shared.enforced_sides(self.node_id, replica_id, topic, partition, 0.0)) > 0

    def plan_fetch(self, plan: FetchPlan, who: Identity, now: float) -> None:
        before = self._take_back(who, now)
        if before is not None:
            before.end()
        waiting: list[Replica] = []
        items: list[FetchItem] = []
        for item in plan.items:
            replica = self._replica(item, now)
            if not replica.throttles:
                continue
            replica.in_sync = self._shared.in_sync(replica, now)
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
        waiter.asks(now)
        if waiter.may_begin(now):
            _put_first_that_begins_first(items, waiting)
        self._share_out(plan, items, waiting, who, waiter, now)

    def _replica(self, item: FetchItem, now: float) -> Replica:
        key = (item.replica_id, item.topic, item.partition)
        shared = self._shared
        replica = shared.replicas.get(key)
        if replica is None:
            replica = Replica(key, now)
            shared.replicas[key] = replica
        if replica.leader_id != self.node_id or replica.generation != shared.generation:
            replica.leader_id, replica.generation = self.node_id, shared.generation
            replica.throttles = shared.enforced_sides(
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
        """Let in as many replicas as there are bytes for, in their turn, and hold back the others."""
        grants = Grants(now)
        paced = self._shared.limits.settings.algorithm.paced
        turn = Round(self._shared.ahead(waiter, now), now)
        for at, replica in enumerate(replicas):
            item = items[at]
            begins = paced and replica.begins
            if begins and not waiter.may_begin(now):
                plan.omit(item, waiter.begin_at(now))
                replica.omit([], now)
                continue
            lacking = turn.lacking(replica, PIECE_BYTES if grants.replicas else 0)
            if lacking:
                plan.omit(item, turn.ready_at)
                replica.omit(lacking, now)
                continue
            replica.omitted_since = 0.0
            if begins:
                waiter.begin(now)
            share = max(turn.left / (len(replicas) - at), PIECE_BYTES)
            self._grant(plan, item, replica, min(turn.left, share, item.max_bytes), grants, now)
        waiter.throttles = list(turn.exhausted)
        waiter.ready_at = min(turn.exhausted.values(), default=now)
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
            # It has had its turn, also with all that it wants.
            item.bound = item.max_bytes
        replica.granted = granted
        grants.replicas.append(replica)
        for throttle in replica.throttles:
            throttle.reserve(granted, now)
            grants.reserved[throttle] = grants.reserved.get(throttle, 0) + granted

    def _take_back(self, who: Identity, now: float) -> Grants | None:
        """The fetch that was under way on a connection is answered, or asked for anew: what comes counts,
        and not what was granted.
        """
        grants = self._grants.pop(who, None)
        if grants is not None:
            for throttle, size in grants.reserved.items():
                throttle.reserve(-size, now)
        return grants

    def charge(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> Verdict:
        if request.replica_id < 0:
            return ALLOW
        grants = self._take_back(who, now)
        self._record(request, response.items, now)
        if grants is not None:
            if not response.partial:
                _learn(grants, response.items)
            grants.end()
        return ALLOW

    def charge_items(self, request: RequestView, items: list[Item], who: Identity, now: float) -> Verdict:
        if request.replica_id >= 0:
            self._record(request, items, now)
        return ALLOW

    def _record(self, request: RequestView, items: list[Item], now: float) -> None:
        shared = self._shared
        follower = request.replica_id
        for item in items:
            if item.size > 0 and item.topic:
                replica = shared.replicas.get((follower, item.topic, item.partition))
                in_sync = replica is None or replica.in_sync
                for throttle in shared.sides(self.node_id, follower, item.topic, item.partition, now):
                    throttle.record(item.size, in_sync, now)
                if replica is not None:
                    replica.came(item.size, now)

    def forget_idle(self, now: float) -> None:
        replicas = self._shared.replicas
        for key in [key for key, replica in replicas.items() if now - replica.seen_at > FORGET_SECONDS]:
            del replicas[key]
        for who in [who for who, grants in self._grants.items() if now - grants.since > FORGET_SECONDS]:
            # Its connection is over: nothing comes any more of what was granted.
            gone = self._take_back(who, now)
            if gone is not None:
                gone.end()


def _put_first_that_begins_first(items: list[FetchItem], replicas: list[Replica]) -> None:
    """So that none waits for ever behind those that go on."""
    for at, replica in enumerate(replicas):
        if replica.begins:
            items.insert(0, items.pop(at))
            replicas.insert(0, replicas.pop(at))
            return


def _learn(grants: Grants, items: list[Item]) -> None:
    """Of replicas from which nothing has come, though they lack messages, a larger piece is asked next."""
    came = {(item.topic, item.partition) for item in items if item.size > 0}
    for replica in grants.replicas:
        if replica.lag > 0 and (replica.topic, replica.partition) not in came:
            replica.came_in_vain()


NATIVE: Final = (
    LEADER_THROTTLED_REPLICAS,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_RATE,
)
"""Those that every broker knows and can enforce itself."""
CONFIGS: Final = (*NATIVE, LEADER_THROTTLED, FOLLOWER_THROTTLED)
KIND: Final = QuotaKind(
    name="replication",
    keys=(),
    api_keys=(FETCH,),
    scope=PER_BROKER,
    build=Replication,
    help="Bytes per second that a broker sends and fetches of throttled replicas that are not in sync.",
    configs=CONFIGS,
    between_brokers=True,
)
