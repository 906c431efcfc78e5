"""Throttle: the rate of throttled replicas that one broker sends or fetches (KIP-73), and what it allows.

    pace      tokens refill at the limit, up to one second's worth. Fetches are granted pieces that the tokens
              allow, so that the rate of every second is near the limit.
    window    as in Kafka's ReplicationQuotaManager: nothing while the SimpleRate is over the limit, otherwise
              everything that is fetched

Bytes are charged when they arrive. Until then granted bytes are reserved, so that connections that fetch at
the same time do not all get them.
"""

import math
from typing import Final, final

from proxy.quota.limits.config_keys import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE
from proxy.quota.limits.enforcement import ENFORCE, KAFKA_WINDOW, UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.first_parts import FirstParts
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.measure.rates import SimpleRate, TokenBucket

MOST_BURST_SECONDS: Final = 1.0
"""The largest burst, whatever burst_seconds is: a reassignment that was idle must not flood the followers."""
STEP_SECONDS: Final = 0.05
"""The smallest grant, in seconds of the limit: twenty fetches per second. Shorter steps cost more fetches;
longer ones make in-sync replicas of the same connection wait while the follower writes the records.
"""
ASK_AGAIN_SECONDS: Final = 0.5
"""The longest wait until a throttle is checked again: a limit of 0 never has bytes, but may change."""
LEADER: Final = "leader"
FOLLOWER: Final = "follower"


@final
class Throttle:
    """One side (LEADER or FOLLOWER) of one broker."""

    def __init__(self, role: str, node_id: int) -> None:
        self.role: Final = role
        self.node_id: Final = node_id
        self.key: Final = LEADER_THROTTLED_RATE if role == LEADER else FOLLOWER_THROTTLED_RATE
        """The config that has its limit."""
        self.bucket: Final = Bucket(quota=self.key.name, limit=UNLIMITED, rule=RateRule(), now=0.0)
        """Has the limit, this process's part of it, and the tokens. Its uses are the bytes that came and the
        reserved ones.
        """
        self.first_parts = FirstParts()
        """The part of the limit with which it begins when a limit is set."""
        self.enforced = True
        """Whether it omits replicas, and does not only count."""
        self.total_bytes = 0
        """The bytes of throttled replicas so far, in sync or not."""
        self.omitted = 0
        """How many times a replica began to be omitted because of this throttle."""
        self.throttled_seconds = 0.0
        """How long any replica was omitted."""
        self._omitted_at = 0.0
        """When a replica was last omitted because of it."""
        self._window = KAFKA_WINDOW
        self._rate = SimpleRate(KAFKA_WINDOW.samples, KAFKA_WINDOW.seconds)
        self._in_sync_rate = SimpleRate(KAFKA_WINDOW.samples, KAFKA_WINDOW.seconds)
        self._burst_seconds = 0.0
        self._reserved = 0.0
        """The bytes that are granted and have not come."""

    @property
    def limit(self) -> float:
        """Bytes per second that this process may use."""
        return self.bucket.limit

    @property
    def whole_limit(self) -> float:
        """Bytes per second, however many processes share them."""
        return self.bucket.whole_limit

    @property
    def _burst(self) -> float:
        return self.bucket.limit * self._burst_seconds

    def _tokens(self) -> TokenBucket | None:
        return None if self.bucket.limit == UNLIMITED else self.bucket.tokens

    def configure(self, limit: float, limits: Limits, now: float) -> None:
        """Take a limit and the settings of its measurement. The use so far still counts."""
        window = limits.settings.replication_window
        if not window.same(self._window):
            self._rate = SimpleRate(window.samples, window.seconds)
            self._in_sync_rate = SimpleRate(window.samples, window.seconds)
            self._window = window
        was_observed = not self.enforced
        begins = self.bucket.whole_limit == UNLIMITED and 0.0 < limit < UNLIMITED
        mode = limits.mode(self.key.name)
        self.enforced = mode == ENFORCE
        if limit == UNLIMITED or (was_observed and self.enforced):
            # What was fetched without enforcement is not a debt.
            self.bucket.forget_tokens()
        algorithm = limits.settings.algorithm
        self._burst_seconds = min(algorithm.burst_seconds, MOST_BURST_SECONDS) if algorithm.paced else 0.0
        self.bucket.configure(limit, RateRule(burst_seconds=self._burst_seconds, mode=mode), now)
        if begins and self.enforced:
            self.first_parts.give(self.bucket, now)
        self._forgive(now)

    @property
    def step_bytes(self) -> float:
        """The tokens that a fetch needs."""
        return self.limit * STEP_SECONDS

    def count_omission(self, now: float) -> None:
        """Note that a replica is omitted now."""
        self.throttled_seconds += min(now - self._omitted_at, ASK_AGAIN_SECONDS)
        self._omitted_at = now

    def rate(self, now: float) -> float:
        """Bytes per second: Kafka's Leader- or FollowerReplicationThrottledRate."""
        return self._rate.measure(now)

    def in_sync_rate(self, now: float) -> float:
        """The part of rate() that is of in-sync replicas."""
        return self._in_sync_rate.measure(now)

    def over(self, now: float) -> bool:
        """Whether replicas that are not in sync are omitted."""
        return self.allowance(now) <= 0.0

    def allowance(self, now: float) -> float:
        """The bytes that may be fetched now."""
        tokens = self._tokens()
        if tokens is not None:
            return tokens.measure(now)
        if self.limit == UNLIMITED:
            return math.inf
        return math.inf if self._rate.measure(now) <= self.limit and self.limit > 0.0 else 0.0

    def has_spare(self, ahead: int, now: float) -> bool:
        """Whether those that fetch use less than the limit: a quarter of the burst is left, and a step for
        each of the connections `ahead`. Half of the burst is always enough. Reserved bytes count as left: a
        replica that starts reserves what it may bring, and may have far less.
        """
        tokens = self._tokens()
        least = min(self._burst * 0.25 + self.for_others(ahead), self._burst * 0.5)
        return tokens is not None and self._burst > 0.0 and tokens.measure(now) + self._reserved >= least

    def lacks(self, size: float, ahead: int, now: float) -> bool:
        """Whether the tokens are too few for a size, if a step is left for each of the connections `ahead`.

        For a size that is larger than the burst, a part of the burst is enough; the rest becomes a debt.
        """
        tokens = self._tokens()
        if tokens is None or self.limit <= 0.0:
            return self.over(now)
        return tokens.measure(now) < self._least(size, ahead)

    def ready_at(self, size: float, ahead: int, now: float) -> float:
        """When the tokens will be enough for a size."""
        tokens = self._tokens()
        if self.limit <= 0.0:
            return now + ASK_AGAIN_SECONDS
        if tokens is None:
            return now + min(self._rate.throttle_seconds(self.limit, now), ASK_AGAIN_SECONDS)
        # TokenBucket rounds to microseconds: a little later, so that the tokens are enough at that time.
        return now + max(self._least(size, ahead) - tokens.measure(now), 0.0) / self.limit + 2e-6

    def _least(self, size: float, ahead: int) -> float:
        """The tokens that a size needs: at most 0.5 of the burst for itself, and 0.4 for others.

        The sum is less than the burst: if a fetch waited for a full bucket, the refill between that moment
        and the fetch would be lost, and the rate would fall below the limit. Half for the size lets replicas
        with batches larger than the burst make progress; 0.4 keeps most of the rest for those that waited
        longer.
        """
        return min(size, self._burst * 0.5) + self.for_others(ahead)

    def for_others(self, ahead: int) -> float:
        """The tokens to leave for connections that have waited longer."""
        return min(ahead * self.step_bytes, self._burst * 0.4)

    def reserve(self, size: float, now: float) -> None:
        """Reserve granted bytes; a negative size releases them."""
        self.bucket.used += size
        self._reserved += size
        tokens = self._tokens()
        if tokens is not None:
            tokens.record(size, now)

    def record(self, size: int, in_sync: bool, now: float) -> None:
        """Charge bytes of a throttled replica."""
        self.total_bytes += size
        self.bucket.used += size
        self._rate.record(size, now)
        if in_sync:
            self._in_sync_rate.record(size, now)
        tokens = self._tokens()
        if tokens is not None:
            tokens.record(size, now)
            self._forgive(now)

    def _forgive(self, now: float) -> None:
        """Limit the debt to what Kafka's rate remembers: the bytes of all its windows."""
        tokens = self._tokens()
        if tokens is not None:
            beyond = -self.limit * self._window.total_seconds - tokens.measure(now)
            if beyond > 0.0:
                tokens.record(-beyond, now)
