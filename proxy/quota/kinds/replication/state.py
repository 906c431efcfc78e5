"""ReplicationState: the state of replication quotas of a whole cluster."""

from typing import Final, final

from proxy.quota.cluster_view import NOTHING_KNOWN
from proxy.quota.identity import Identity
from proxy.quota.kinds.replication.replica import Replica, ReplicaKey
from proxy.quota.kinds.replication.throttle import FOLLOWER, LEADER, Throttle
from proxy.quota.kinds.replication.throttled_replicas import ThrottledReplicas
from proxy.quota.kinds.replication.waiter import GRACE_SECONDS, Waiter
from proxy.quota.limits.config_keys import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import BROKER, NO_RESOURCES
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.first_parts import FirstParts

SEEN_SECONDS: Final = 5.0
"""Metrics show a replica for this long after its last fetch: followers fetch each replica far more often."""


@final
class ThrottleState:
    """The values of a throttle at one moment, for metrics and the admin API."""

    def __init__(self, throttle: Throttle, now: float) -> None:
        self.role: Final = throttle.role
        self.node_id: Final = throttle.node_id
        self.limit: Final = throttle.whole_limit
        """Bytes per second."""
        self.share: Final = throttle.limit
        """The part of the limit that this process may use."""
        self.enforced: Final = throttle.enforced
        self.rate: Final = throttle.rate(now)
        self.total_bytes: Final = throttle.total_bytes
        self.omitted: Final = throttle.omitted
        self.throttled_seconds: Final = throttle.throttled_seconds
        self.inbound = throttle.in_sync_rate(now)
        """Bytes per second by which its throttled partitions grow."""
        self.behind = 0
        """The number of throttled replicas that are not in sync."""
        self.omitted_replicas = 0
        """How many of them are omitted from fetches now."""
        self.lag = 0
        """The messages that they lack."""
        self.since = 0.0
        """Since when any is behind; 0.0 if none is."""

    def add(self, replica: Replica) -> None:
        """Add a replica of this throttle."""
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
    def too_low(self) -> bool:
        """Whether its replicas never get in sync: they grow as fast as they may be fetched (KIP-73)."""
        return self.behind > 0 and self.limit <= self.inbound


@final
class ReplicationState:
    """The brokers' quotas share one object, because a follower's rate counts the bytes from all leaders."""

    def __init__(self) -> None:
        self.limits = Limits({})
        self.generation = 0
        """Incremented by configure(): Replica.throttles is of one generation."""
        self.leaders = ThrottledReplicas(NO_RESOURCES, True)
        self.followers = ThrottledReplicas(NO_RESOURCES, False)
        self.view = NOTHING_KNOWN
        self._first_parts: Final[dict[int, FirstParts]] = {}
        """By node id."""
        self.throttles: Final[dict[tuple[str, int], Throttle]] = {}
        """By role and node id."""
        self.replicas: Final[dict[ReplicaKey, Replica]] = {}
        self._waiters: Final[dict[Identity, Waiter]] = {}
        """By connection."""
        self._enforced: Final[dict[tuple[int, Throttle, Throttle], list[Throttle]]] = {}
        """One list for all replicas with the same throttles, so that a plan compares lists by identity."""

    def configure(self, limits: Limits, now: float) -> None:
        """Set new limits. The quota of each broker calls it; the first call with the same limits counts."""
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
        """Whether any rate is set, and any replica is throttled."""
        resources = self.limits.resources
        rates = len(resources.configured(BROKER, LEADER_THROTTLED_RATE.name))
        rates += len(resources.configured(BROKER, FOLLOWER_THROTTLED_RATE.name))
        return rates > 0 and (self.leaders.any or self.followers.any)

    def throttle(self, role: str, node_id: int, now: float) -> Throttle:
        """The throttle of one side of a broker, created at the first call."""
        throttle = self.throttles.get((role, node_id))
        if throttle is None:
            throttle = Throttle(role, node_id)
            throttle.first_parts = self._first_parts.get(node_id, throttle.first_parts)
            throttle.configure(self._limit(throttle), self.limits, now)
            self.throttles[role, node_id] = throttle
        return throttle

    def begin_with(self, node_id: int, first_parts: FirstParts) -> None:
        """Have a broker's limits that are set from now on begin with these parts."""
        self._first_parts[node_id] = first_parts
        for role in (LEADER, FOLLOWER):
            throttle = self.throttles.get((role, node_id))
            if throttle is not None:
                throttle.first_parts = first_parts

    def _limit(self, throttle: Throttle) -> float:
        limit = self.limits.resources.number(BROKER, str(throttle.node_id), throttle.key.name)
        return UNLIMITED if limit is None else limit

    def replica(self, key: ReplicaKey, now: float) -> Replica:
        """The state of a replica, created at the first call."""
        replica = self.replicas.get(key)
        if replica is None:
            replica = Replica(key, now)
            self.replicas[key] = replica
        return replica

    def throttles_of(
        self, leader: int, follower: int, topic: str, partition: int, now: float
    ) -> list[Throttle]:
        """The throttles of a replica that have a limit."""
        found: list[Throttle] = []
        if self.leaders.cover(topic, partition, leader):
            found.append(self.throttle(LEADER, leader, now))
        if self.followers.cover(topic, partition, follower):
            found.append(self.throttle(FOLLOWER, follower, now))
        return [throttle for throttle in found if throttle.limit != UNLIMITED]

    def enforced_throttles(
        self, leader: int, follower: int, topic: str, partition: int, now: float
    ) -> list[Throttle]:
        """The throttles of a replica that have a limit and are enforced; the same list for equal ones."""
        sides = self.throttles_of(leader, follower, topic, partition, now)
        found = [throttle for throttle in sides if throttle.enforced]
        if not found:
            return found
        return self._enforced.setdefault((len(found), found[0], found[-1]), found)

    def waiter(self, who: Identity) -> Waiter:
        """The state of a connection that waits for bytes."""
        waiter = self._waiters.get(who)
        if waiter is None:
            waiter = Waiter(0.0)
            self._waiters[who] = waiter
        return waiter

    def ahead(self, waiter: Waiter, now: float) -> dict[Throttle, int]:
        """The number of connections that have waited longer than this one, by throttle."""
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

    def shared_buckets(self, node_id: int, now: float) -> list[Bucket]:
        """The buckets of a broker's throttles, with the numbers of connections that wait for them."""
        found: list[Bucket] = []
        waiters = list(self._waiters.values())
        for role in (LEADER, FOLLOWER):
            throttle = self.throttles.get((role, node_id))
            if throttle is not None and throttle.limit != UNLIMITED:
                waiting = [
                    waiter
                    for waiter in waiters
                    if throttle in waiter.throttles and now <= waiter.ready_at + GRACE_SECONDS
                ]
                throttle.bucket.waiters = len(waiting)
                throttle.bucket.growth = max([each.growth(throttle, now) for each in waiters], default=0.0)
                found.append(throttle.bucket)
        return found

    def report(self, now: float) -> list[ThrottleState]:
        """The leader's and the follower's throttle of every broker, with a limit or without."""
        for node_id in self.view.nodes:
            self.throttle(LEADER, node_id, now)
            self.throttle(FOLLOWER, node_id, now)
        states = {throttle: ThrottleState(throttle, now) for throttle in self.throttles.values()}
        for replica in self.replicas.values():
            if now - replica.seen_at <= SEEN_SECONDS:
                for throttle in replica.throttles:
                    states[throttle].add(replica)
        return list(states.values())
