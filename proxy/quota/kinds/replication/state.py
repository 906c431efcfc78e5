"""ReplicationState: what replication quotas know of a whole cluster."""

from typing import Final, final

from proxy.quota.cluster_view import NOTHING_KNOWN
from proxy.quota.identity import Identity
from proxy.quota.kinds.replication.replica import Replica, ReplicaKey
from proxy.quota.kinds.replication.throttle import FOLLOWER, LEADER, Throttle
from proxy.quota.kinds.replication.throttled_replicas import ThrottledReplicas
from proxy.quota.limits.config_keys import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import BROKER, NO_RESOURCES
from proxy.wire.fetch_rewrite import UNKNOWN

VIEW_SECONDS: Final = 2.0
"""For how long what the cluster has said of its partitions holds."""


SEEN_SECONDS: Final = 5.0
"""A follower asks for each of its partitions far more often; one that has not is gone."""
GRACE_SECONDS: Final = 1.0
"""For so long past its time a connection that waits for its turn keeps it."""
MOST_PAUSE_SECONDS: Final = 0.5
"""However long a follower took to begin a replica, the next one begins after so long."""


@final
class Waiter:
    """A connection with replicas that are held back.

    The first bytes of a replica are dear to its follower: it writes the leader epoch to its disk, and syncs
    it, while all replicas of the connection wait, those in sync too. So they begin one by one, with a pause
    after each as long as it took.
    """

    __slots__ = ("_began_at", "_begin_at", "ready_at", "served_at", "throttles")

    def __init__(self, served_at: float) -> None:
        self.served_at = served_at
        """When something of it was let in last."""
        self.ready_at = 0.0
        """When it asks again."""
        self.throttles: list[Throttle] = []
        """Those that it waits for."""
        self._began_at = 0.0
        """When the fetch that is under way was let in with a replica that begins; 0.0 for without."""
        self._begin_at = 0.0

    def asks(self, now: float) -> None:
        """Its follower fetches: it has written what came last."""
        if self._began_at > 0.0:
            self._begin_at = now + min(now - self._began_at, MOST_PAUSE_SECONDS)
            self._began_at = 0.0

    def may_begin(self, now: float) -> bool:
        """Whether a replica of which nothing has come may be let in."""
        return self._began_at == 0.0 and now >= self._begin_at

    def begin(self, now: float) -> None:
        """One is let in."""
        self._began_at = now

    def begin_at(self, now: float) -> float:
        """When the next one may be."""
        return max(self._begin_at, now)


@final
class ThrottleState:
    """One side of one broker at one moment, as metrics and the admin page show it."""

    def __init__(self, throttle: Throttle, now: float) -> None:
        self.role: Final = throttle.role
        self.node_id: Final = throttle.node_id
        self.limit: Final = throttle.limit
        """Bytes per second."""
        self.enforced: Final = throttle.enforced
        self.rate: Final = throttle.rate(now)
        self.total_bytes: Final = throttle.total_bytes
        self.omitted: Final = throttle.omitted
        self.throttled_seconds: Final = throttle.throttled_seconds
        self.inbound = throttle.in_sync_rate(now)
        """Bytes per second that its throttled partitions grow by, as far as it has to carry them."""
        self.behind = 0
        """Replicas that are throttled and not in sync."""
        self.omitted_replicas = 0
        """As many of them as are left out of fetches now."""
        self.lag = 0
        """Messages that they lack."""
        self.since = 0.0
        """Since when any is behind; 0.0 while none is."""

    def add(self, replica: Replica) -> None:
        """Count a replica that is throttled on this side."""
        if replica.in_sync:
            return
        self.behind += 1
        self.omitted_replicas += replica.omitted_since > 0.0
        self.lag += replica.lag
        self.inbound += replica.inbound
        if self.since == 0.0 or replica.behind_since < self.since:
            self.since = replica.behind_since

    @property
    def limited(self) -> bool:
        return self.limit != UNLIMITED

    @property
    def endless(self) -> bool:
        """Whether its replicas never get in sync: they grow as fast as they may be fetched (KIP-73)."""
        return self.behind > 0 and self.limit <= self.inbound


@final
class ReplicationState:
    """Shared by the brokers' quotas: a follower's rate is over all of its leaders."""

    def __init__(self) -> None:
        self.limits = Limits({})
        self.generation = 0
        """How often limits have come: what is throttled on which sides holds for one of these."""
        self.leaders = ThrottledReplicas(NO_RESOURCES, True)
        self.followers = ThrottledReplicas(NO_RESOURCES, False)
        self.view = NOTHING_KNOWN
        self.throttles: Final[dict[tuple[str, int], Throttle]] = {}
        """By role and node id."""
        self.replicas: Final[dict[ReplicaKey, Replica]] = {}
        self._waiters: Final[dict[Identity, Waiter]] = {}
        """By connection."""

    def configure(self, limits: Limits, now: float) -> None:
        if limits is self.limits:
            return
        self.limits = limits
        self.generation += 1
        self.leaders = ThrottledReplicas(limits.resources, True)
        self.followers = ThrottledReplicas(limits.resources, False)
        for throttle in self.throttles.values():
            throttle.configure(self._limit(throttle), limits, now)

    @property
    def active(self) -> bool:
        """Whether any rate is set, and any replica listed."""
        resources = self.limits.resources
        rates = len(resources.configured(BROKER, LEADER_THROTTLED_RATE.name))
        rates += len(resources.configured(BROKER, FOLLOWER_THROTTLED_RATE.name))
        return rates > 0 and (self.leaders.any or self.followers.any)

    def throttle(self, role: str, node_id: int, now: float) -> Throttle:
        throttle = self.throttles.get((role, node_id))
        if throttle is None:
            throttle = Throttle(role, node_id)
            throttle.configure(self._limit(throttle), self.limits, now)
            self.throttles[role, node_id] = throttle
        return throttle

    def _limit(self, throttle: Throttle) -> float:
        limit = self.limits.resources.number(BROKER, str(throttle.node_id), throttle.key.name)
        return UNLIMITED if limit is None else limit

    def sides(self, leader: int, follower: int, topic: str, partition: int, now: float) -> list[Throttle]:
        """The sides on which a replica is throttled, and a limit set."""
        found: list[Throttle] = []
        if self.leaders.cover(topic, partition, leader):
            found.append(self.throttle(LEADER, leader, now))
        if self.followers.cover(topic, partition, follower):
            found.append(self.throttle(FOLLOWER, follower, now))
        return [throttle for throttle in found if throttle.limit != UNLIMITED]

    def enforced_sides(
        self, leader: int, follower: int, topic: str, partition: int, now: float
    ) -> list[Throttle]:
        """As many of these sides as hold anything back."""
        sides = self.sides(leader, follower, topic, partition, now)
        return [throttle for throttle in sides if throttle.enforced]

    def waiter(self, who: Identity) -> Waiter:
        """A connection's place among those that wait."""
        waiter = self._waiters.get(who)
        if waiter is None:
            waiter = Waiter(0.0)
            self._waiters[who] = waiter
        return waiter

    def ahead(self, waiter: Waiter, now: float) -> dict[Throttle, int]:
        """How many connections have waited for each throttle longer than this one."""
        counts: dict[Throttle, int] = {}
        gone: list[Identity] = []
        for who, other in self._waiters.items():
            if other is waiter:
                continue
            if now > other.ready_at + GRACE_SECONDS:
                gone.append(who)
            elif other.served_at < waiter.served_at:
                for throttle in other.throttles:
                    counts[throttle] = counts.get(throttle, 0) + 1
        for who in gone:
            del self._waiters[who]
        return counts

    def in_sync(self, replica: Replica, now: float) -> bool:
        told = replica.high_watermark != UNKNOWN
        if told and replica.offset >= replica.high_watermark:
            return True
        view = self.view
        partition = view.partitions.get((replica.topic, replica.partition))
        if partition is None or now - view.as_of > VIEW_SECONDS:
            # A follower in sync has fetched up to the high watermark: one that has not is behind.
            return not told or now - replica.told_at > VIEW_SECONDS
        return replica.follower_id in partition.isr

    def report(self, now: float) -> list[ThrottleState]:
        """Both sides of every broker that is known, with a limit or without."""
        for node_id in self.view.nodes:
            self.throttle(LEADER, node_id, now)
            self.throttle(FOLLOWER, node_id, now)
        states = {throttle: ThrottleState(throttle, now) for throttle in self.throttles.values()}
        for replica in self.replicas.values():
            if now - replica.seen_at <= SEEN_SECONDS:
                for throttle in replica.throttles:
                    states[throttle].add(replica)
        return list(states.values())
