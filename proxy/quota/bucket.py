"""Bucket: what one entity has used of one quota, and what that made it wait."""

from typing import Final, final

from proxy.quota.limits import UNLIMITED
from proxy.quota.rates import SampledRate, TokenBucket

IDLE_SECONDS: Final = 3600.0
"""Kafka forgets a quota's sensor after this long without a record; the counters then start anew."""


@final
class Rule:
    """How a bucket limits: by tokens, `burst_seconds` of the limit at most; where that is 0, by Kafka's
    rate."""

    __slots__ = ("burst_seconds", "samples", "window_seconds")

    def __init__(self, burst_seconds: float, samples: int, window_seconds: float) -> None:
        self.burst_seconds: Final = burst_seconds
        self.samples: Final = samples
        self.window_seconds: Final = window_seconds


@final
class BucketState:
    """A bucket as metrics and the admin page show it, at one moment."""

    __slots__ = (
        "client_id",
        "limit",
        "quota",
        "rate",
        "throttle_seconds",
        "throttled_requests",
        "throttled_until",
        "user",
    )

    def __init__(
        self,
        quota: str,
        user: str,
        client_id: str,
        limit: float,
        rate: float,
        throttled_until: float,
        throttled_requests: int,
        throttle_seconds: float,
    ) -> None:
        self.quota: Final = quota
        """The quota's key, such as producer_byte_rate."""
        self.user: Final = user
        """Empty where the bucket is shared by all users; client_id likewise."""
        self.client_id: Final = client_id
        self.limit: Final = limit
        """Per second, in the quota's unit."""
        self.rate: Final = rate
        """Per second now, by Kafka's sampled rate, whatever rule limits."""
        self.throttled_until: Final = throttled_until
        """The end of the last wait, on the clock of `now`; past or 0.0: not throttled."""
        self.throttled_requests: Final = throttled_requests
        self.throttle_seconds: Final = throttle_seconds
        """All waits together."""


@final
class Bucket:
    """One entity's use of one quota; `user` and `client_id` are empty where they are not part of it."""

    def __init__(self, quota: str, user: str, client_id: str, limit: float, rule: Rule, now: float) -> None:
        self.quota: Final = quota
        self.user: Final = user
        self.client_id: Final = client_id
        self.limit = limit
        self.last_used = now
        self.throttled_until = 0.0
        self.throttled_requests = 0
        self.throttle_seconds = 0.0
        self.sampled = SampledRate(rule.samples, rule.window_seconds)
        """Kafka's rate: shown always, and the rule itself where there are no tokens."""
        self.tokens: TokenBucket | None = None
        self._rule = rule
        self._set_tokens(rule, now)

    def configure(self, limit: float, rule: Rule, now: float) -> None:
        """Take a new limit or rule in place: what was used so far still counts.

        Without a limit nothing is recorded; the tokens go on refilling at the last one, for the case that it
        comes back.
        """
        self.limit = limit
        if limit == UNLIMITED:
            return
        old = self._rule
        if rule.samples != old.samples or rule.window_seconds != old.window_seconds:
            self.sampled = SampledRate(rule.samples, rule.window_seconds)
        self._rule = rule
        self._set_tokens(rule, now)

    def _set_tokens(self, rule: Rule, now: float) -> None:
        burst = self.limit * rule.burst_seconds
        tokens = self.tokens
        if rule.burst_seconds <= 0.0:
            self.tokens = None
        elif tokens is None:
            self.tokens = TokenBucket(self.limit, burst)
        else:
            tokens.configure(self.limit, burst, now)

    def record(self, value: float, now: float) -> float:
        """Count a use; returns how long to wait now, in seconds, 0.0 when within the limit."""
        self.last_used = now
        self.sampled.record(value, now)
        tokens = self.tokens
        if tokens is None:
            return self.sampled.throttle_seconds(self.limit, now)
        tokens.record(value, now)
        return tokens.throttle_seconds(self.limit, now)

    def count_throttle(self, seconds: float, requests: int, now: float) -> None:
        """Count a wait of so many seconds, by a request (1) or by one that was counted before (0)."""
        self.throttled_requests += requests
        self.throttle_seconds += seconds
        self.throttled_until = max(self.throttled_until, now + seconds)

    def idle(self, now: float) -> bool:
        return now - self.last_used >= IDLE_SECONDS

    def state(self, now: float) -> BucketState:
        return BucketState(
            self.quota,
            self.user,
            self.client_id,
            self.limit,
            self.sampled.measure(now),
            self.throttled_until,
            self.throttled_requests,
            self.throttle_seconds,
        )
