"""Waiter: a connection with replicas that are omitted, and when its replicas may start."""

import math
from typing import Final, final

from proxy.quota.kinds.replication.starts_at_once import StartsAtOnce
from proxy.quota.kinds.replication.throttle import Throttle

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
