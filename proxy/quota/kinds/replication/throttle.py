"""Throttle: what one broker sends, or fetches, of throttled replicas (KIP-73), and what it may yet.

    pace      tokens that refill at the limit, up to a second's worth: replicas are let in by pieces that the
              tokens allow, so that every second is near the limit
    window    Kafka's own: nothing while SimpleRate is over the limit, and all that is asked for while it is
              not

Bytes are recorded when they have come. Until then a piece that was granted is reserved, so that connections
which ask at the same time do not all get it.
"""

import math
from typing import Final, final

from proxy.quota.limits.config_keys import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE
from proxy.quota.limits.enforcement import ENFORCE, KAFKA_WINDOW, UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.rates import SimpleRate, TokenBucket

MOST_BURST_SECONDS: Final = 1.0
"""What was not used is saved up for so long at the most: a move that stood still does not rush afterwards."""
TURN_SECONDS: Final = 0.05
"""How much has to be there before the next fetch is let in, at the limit: twenty turns in a second. Each is
short, since replicas in sync wait while their follower writes what came with it.
"""
ASK_AGAIN_SECONDS: Final = 0.5
"""When to ask again where the limit is 0, which may change."""
LEADER: Final = "leader"
FOLLOWER: Final = "follower"


@final
class Throttle:
    """One side (LEADER or FOLLOWER) of one broker."""

    def __init__(self, role: str, node_id: int) -> None:
        self.role: Final = role
        self.node_id: Final = node_id
        self.key: Final = LEADER_THROTTLED_RATE if role == LEADER else FOLLOWER_THROTTLED_RATE
        """The config with its limit."""
        self.limit = UNLIMITED
        """Bytes per second."""
        self.enforced = True
        """Whether it holds anything back; else it only counts."""
        self.total_bytes = 0
        """Bytes of throttled replicas so far, in sync or not."""
        self.omitted = 0
        """How many times a partition was left out of a fetch for the sake of this limit."""
        self.throttled_seconds = 0.0
        """For how long any was."""
        self._omitted_at = 0.0
        self._window = KAFKA_WINDOW
        self._rate = SimpleRate(KAFKA_WINDOW.samples, KAFKA_WINDOW.seconds)
        self._in_sync_rate = SimpleRate(KAFKA_WINDOW.samples, KAFKA_WINDOW.seconds)
        self._tokens: TokenBucket | None = None
        self._burst = 0.0

    def configure(self, limit: float, limits: Limits, now: float) -> None:
        """Take a limit and how it is measured; what was used so far still counts."""
        window = limits.settings.replication_window
        if not window.same(self._window):
            self._rate = SimpleRate(window.samples, window.seconds)
            self._in_sync_rate = SimpleRate(window.samples, window.seconds)
            self._window = window
        self.limit = limit
        was_observed = not self.enforced
        self.enforced = limits.mode(self.key.name) == ENFORCE
        if was_observed and self.enforced:
            # What went by unlimited is no debt.
            self._tokens = None
        algorithm = limits.settings.algorithm
        if limit == UNLIMITED or not algorithm.paced:
            self._tokens = None
            return
        self._burst = limit * min(algorithm.burst_seconds, MOST_BURST_SECONDS)
        if self._tokens is None:
            self._tokens = TokenBucket(limit, self._burst)
        else:
            self._tokens.configure(limit, self._burst, now)
        self._forgive(now)

    @property
    def turn_bytes(self) -> float:
        """What has to be there before a fetch is let in."""
        return self.limit * TURN_SECONDS

    def count_omission(self, now: float) -> None:
        """A replica has to wait."""
        self.throttled_seconds += min(now - self._omitted_at, ASK_AGAIN_SECONDS)
        self._omitted_at = now

    def rate(self, now: float) -> float:
        """Bytes per second now, as Kafka's LeaderReplicationThrottledRate and its counterpart."""
        return self._rate.measure(now)

    def in_sync_rate(self, now: float) -> float:
        """As much of it as was for replicas in sync."""
        return self._in_sync_rate.measure(now)

    def over(self, now: float) -> bool:
        """Whether replicas that are not in sync have to wait."""
        return self.allowance(now) <= 0.0

    def allowance(self, now: float) -> float:
        """How many bytes may come now."""
        tokens = self._tokens
        if tokens is not None:
            return tokens.measure(now)
        if self.limit == UNLIMITED:
            return math.inf
        return math.inf if self._rate.measure(now) <= self.limit and self.limit > 0.0 else 0.0

    def lacks(self, size: float, ahead: int, now: float) -> bool:
        """Whether so many bytes may not come yet, with a turn left for each of those `ahead`. A size that
        cannot be saved up may come when enough is there.
        """
        tokens = self._tokens
        if tokens is None or self.limit <= 0.0:
            return self.over(now)
        return tokens.measure(now) < self._least(size, ahead)

    def ready_at(self, size: float, ahead: int, now: float) -> float:
        """When so many bytes may come."""
        tokens = self._tokens
        if self.limit <= 0.0:
            return now + ASK_AGAIN_SECONDS
        if tokens is None:
            return now + min(self._rate.throttle_seconds(self.limit, now), ASK_AGAIN_SECONDS)
        # A microsecond more than it takes, so that rounding does not have it asked twice.
        return now + max(self._least(size, ahead) - tokens.measure(now), 0.0) / self.limit + 2e-6

    def _least(self, size: float, ahead: int) -> float:
        """What has to be there: at most what can be saved up, and of that a part, so that nothing is lost."""
        return min(size, self._burst * 0.5) + self.for_others(ahead)

    def for_others(self, ahead: int) -> float:
        """What is left for those who have waited longer."""
        return min(ahead * self.turn_bytes, self._burst * 0.4)

    def reserve(self, size: float, now: float) -> None:
        """So many bytes have been granted; a negative size takes that back."""
        tokens = self._tokens
        if tokens is not None:
            tokens.record(size, now)

    def record(self, size: int, in_sync: bool, now: float) -> None:
        """So many bytes of throttled replicas have come."""
        self.total_bytes += size
        self._rate.record(size, now)
        if in_sync:
            self._in_sync_rate.record(size, now)
        tokens = self._tokens
        if tokens is not None:
            tokens.record(size, now)
            self._forgive(now)

    def _forgive(self, now: float) -> None:
        """What lies further back than Kafka's windows reach is forgotten, as there."""
        tokens = self._tokens
        if tokens is not None:
            beyond = -self.limit * self._window.total_seconds - tokens.measure(now)
            if beyond > 0.0:
                tokens.record(-beyond, now)
