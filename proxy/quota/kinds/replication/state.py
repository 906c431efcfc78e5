"""ReplicationState: the state of replication quotas of a whole cluster."""

import math
from typing import Final, final

from proxy.quota.cluster_view import NOTHING_KNOWN
from proxy.quota.identity import Identity
from proxy.quota.kinds.replication.replica import Replica, ReplicaKey
from proxy.quota.kinds.replication.starts_at_once import StartsAtOnce
from proxy.quota.kinds.replication.throttle import FOLLOWER, LEADER, Throttle
from proxy.quota.kinds.replication.throttled_replicas import ThrottledReplicas
from proxy.quota.limits.config_keys import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import BROKER, NO_RESOURCES
from proxy.quota.measure.bucket import Bucket

SEEN_SECONDS: Final = 5.0
"""Metrics show a replica for this long after its last fetch: followers fetch each replica far more often."""
GRACE_SECONDS: Final = 1.0
"""How long a waiting connection keeps its place after the time at which it may fetch: it is closed if it has
not fetched by then, and others must not wait for it."""
GROWTH: Final = 4.0
"""While replicas start one by one, because the throttle has no bytes to spare, a process asks for so many
times the bytes that it uses: its use says little about what it could use. If it asked for the whole limit,
one with a slow follower would get more than it can use, and the others less.
"""
MOST_PAUSE_SECONDS: Final = 0.5
"""The longest pause after a replica started: a follower with a slow disk still starts two per second."""


@final
class Waiter:
    """A connection with replicas that are omitted.

    When a replica starts, its follower writes the leader epoch to a checkpoint file and syncs it, in the
    thread that fetches all replicas of the leader. Meanwhile in-sync replicas wait too, and with them produce
    requests with acks=all: for a second, with twenty replicas at once. So replicas start one by one, with a
    pause after each that is as long as the follower took.

    A move of many small replicas would be slower than its throttle. If the throttle has bytes to spare,
    there is no pause, and several replicas may start with one fetch (StartsAtOnce).
    """

    __slots__ = (
        "_at_once",
        "_began",
        "_start_at",
        "_started_at",
        "lacked",
        "ready_at",
        "served_at",
        "starting",
        "throttles",
    )

    def __init__(self, served_at: float) -> None:
        self.served_at = served_at
        """When its last fetch was granted bytes; 0.0 before the first."""
        self.ready_at = 0.0
        """When the throttles will have bytes for it."""
        self.throttles: list[Throttle] = []
        """The throttles that lack bytes for the connection."""
        self.lacked: Final[dict[Throttle, float]] = {}
        """When a throttle last had no bytes to spare, so that replicas start one by one, with pauses."""
        self.starting = False
        """Whether replicas wait for their start."""
        self._started_at = 0.0
        """When the fetch in flight was granted, if a replica starts with it; otherwise 0.0."""
        self._start_at = 0.0
        """When the next replica may start, if the throttles have no bytes to spare."""
        self._began = 0
        """The replicas that got their first bytes with that fetch."""
        self._at_once: Final = StartsAtOnce()

    def growth(self, throttle: Throttle, now: float) -> float:
        """Return how many times the average use of a throttle the replicas that wait for their start could
        use; 0.0 if none waits.
        """
        if not self.starting or now > self.ready_at + GRACE_SECONDS:
            return 0.0
        return GROWTH if now - self.lacked.get(throttle, -math.inf) <= GRACE_SECONDS else 1.0

    def fetches(self, now: float) -> None:
        """Note that the connection fetches, so its follower has written the last response to its disk."""
        if self._started_at > 0.0:
            took = now - self._started_at
            self._start_at = now + min(took, MOST_PAUSE_SECONDS)
            self._started_at = 0.0
            if self._began > 0:
                self._at_once.learn(self._began, took)

    def starts(self, now: float, spare: bool) -> int:
        """The number of replicas that may start. `spare`: the throttles have bytes to spare."""
        if self._started_at > 0.0:
            return 0
        if spare:
            return self._at_once.count
        return 1 if now >= self._start_at else 0

    def start(self, now: float) -> None:
        """Note that a replica starts with the fetch."""
        self._started_at = now
        self._began = 0

    def began(self, replicas: int) -> None:
        """Note how many replicas got their first bytes."""
        self._began += replicas

    def start_at(self, now: float) -> float:
        """When the next replica may start."""
        return max(self._start_at, now)


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
        self._first_part = 1.0
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
            throttle.first_part = self._first_part
            throttle.configure(self._limit(throttle), self.limits, now)
            self.throttles[role, node_id] = throttle
        return throttle

    def begin_with(self, part: float) -> None:
        """Have limits that are set from now on begin with this part: others share them."""
        self._first_part = part
        for throttle in self.throttles.values():
            throttle.first_part = part

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
