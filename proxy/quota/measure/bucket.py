"""Bucket: what one entity has used of one quota, and what that made it wait."""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import ENFORCE, KAFKA_WINDOW, OBSERVE, UNLIMITED, RateWindow
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.fair_share import FairShare
from proxy.quota.measure.rates import EwmaRate, SampledRate, TokenBucket

NO_PARTITION: Final = -1
IDLE_SECONDS: Final = 3600.0
"""Kafka forgets a quota's sensor after this long without a record; the counters then start anew."""


@final
class RateRule:
    """How a bucket limits.

    By tokens, `burst_seconds` of the limit at most or else `least_burst`; where both are 0, by Kafka's
    sampled rate. One use makes wait `max_throttle_seconds` at most; the rest stays as a debt, of which
    `max_debt_seconds` are remembered.

    An observed bucket makes nobody wait, so its debt would never be paid: it counts as paid at once, as if
    the client had waited.
    """

    __slots__ = (
        "burst_seconds",
        "least_burst",
        "max_debt_seconds",
        "max_throttle_seconds",
        "observed",
        "paced",
        "window",
    )

    def __init__(
        self,
        *,
        window: RateWindow = KAFKA_WINDOW,
        burst_seconds: float = 0.0,
        least_burst: float = 0.0,
        max_throttle_seconds: float = UNLIMITED,
        max_debt_seconds: float = UNLIMITED,
        mode: str = ENFORCE,
    ) -> None:
        self.observed: Final = mode == OBSERVE
        self.burst_seconds: Final = burst_seconds
        self.window: Final = window
        self.max_throttle_seconds: Final = max_throttle_seconds
        self.max_debt_seconds: Final = 0.0 if self.observed else max_debt_seconds
        self.least_burst: Final = least_burst
        self.paced: Final = burst_seconds > 0.0 or least_burst > 0.0
        """Whether tokens limit."""

    def same(self, other: "RateRule") -> bool:
        """Whether a bucket would notice no change from one to the other."""
        return (
            self.burst_seconds == other.burst_seconds
            and self.window.same(other.window)
            and self.max_throttle_seconds == other.max_throttle_seconds
            and self.max_debt_seconds == other.max_debt_seconds
            and self.least_burst == other.least_burst
            and self.observed == other.observed
        )


def byte_rate_rule(limits: Limits, key: str) -> RateRule:
    """The rule of a quota of bytes per second: the configured algorithm, without a bound of the debt."""
    algorithm = limits.settings.algorithm
    return RateRule(
        window=algorithm.window,
        burst_seconds=algorithm.burst_seconds if algorithm.paced else 0.0,
        max_throttle_seconds=algorithm.max_throttle_seconds,
        mode=limits.mode(key),
    )


@final
class BucketState:
    """A bucket as metrics and the admin page show it, at one moment."""

    __slots__ = (
        "client_id",
        "ip",
        "limit",
        "mode",
        "partition",
        "quota",
        "rate",
        "throttle_seconds",
        "throttled_requests",
        "throttled_until",
        "tokens",
        "topic",
        "user",
    )

    def __init__(
        self,
        *,
        quota: str,
        limit: float,
        rate: float,
        user: str = "",
        client_id: str = "",
        ip: str = "",
        topic: str = "",
        partition: int = NO_PARTITION,
        throttled_until: float = 0.0,
        throttled_requests: int = 0,
        throttle_seconds: float = 0.0,
        mode: str = ENFORCE,
        tokens: float | None = None,
    ) -> None:
        self.quota: Final = quota
        """The quota's key, such as producer_byte_rate."""
        self.user: Final = user
        """Empty where the bucket is shared by all users; client_id likewise."""
        self.client_id: Final = client_id
        self.ip: Final = ip
        """The address, where the quota is one of addresses; else empty."""
        self.limit: Final = limit
        """Per second, in the quota's unit."""
        self.rate: Final = rate
        """Per second now, as Bucket.measure() has it."""
        self.throttled_until: Final = throttled_until
        """The end of the last wait, on the clock of `now`; past or 0.0: not throttled."""
        self.throttled_requests: Final = throttled_requests
        self.throttle_seconds: Final = throttle_seconds
        """All waits together."""
        self.mode: Final = mode
        """OBSERVE: the three above say what would have been, and nobody has waited."""
        self.tokens: Final = tokens
        """What may be used at once, below zero for a debt; None where no tokens limit."""
        self.topic: Final = topic
        """The topic, where the quota is a topic's; else empty."""
        self.partition: Final = partition
        """The partition, where it has a bucket of its own; else NO_PARTITION."""


@final
class Bucket:
    """One entity's use of one quota; `user`, `client_id`, `ip` and `topic` are empty where they are not part
    of it, and `partition` is NO_PARTITION.
    """

    def __init__(
        self,
        *,
        quota: str,
        limit: float,
        rule: RateRule,
        now: float,
        user: str = "",
        client_id: str = "",
        ip: str = "",
        topic: str = "",
        partition: int = NO_PARTITION,
    ) -> None:
        # What record() touches comes first, as in the rates.
        self.limit = limit
        self.last_used = now
        self._rule = rule
        self.sampled = SampledRate(rule.window.samples, rule.window.seconds)
        """Kafka's rate: shown always, and the rule itself where there are no tokens."""
        self.tokens: TokenBucket | None = None
        self._shares: FairShare | None = None
        """Whose debt it is, while there is any that is divided."""
        self.observed = rule.observed
        """Whether its waits are only counted."""
        self._owed_until = 0.0
        """Without tokens: the end of the longest wait that was cut short."""
        self.average: EwmaRate | None = None
        """In place of the two: what measures a broker-side quota, with record_average()."""
        self.throttled_until = 0.0
        self.throttled_requests = 0
        self.throttle_seconds = 0.0
        self.quota: Final = quota
        self.user: Final = user
        self.client_id: Final = client_id
        self.ip: Final = ip
        self.topic: Final = topic
        self.partition: Final = partition
        self._set_tokens(rule, now)

    def configure(self, limit: float, rule: RateRule, now: float) -> None:
        """Take a new limit or rule in place: what was used so far still counts.

        Without a limit nothing is recorded; the tokens go on refilling at the last one, for the case that it
        comes back.
        """
        old_limit = self.limit
        self.limit = limit
        shares = self._shares
        if limit == UNLIMITED or rule.observed or not rule.paced:
            self._shares = None
        elif shares is not None:
            shares.pay(old_limit, now)
        if limit == UNLIMITED:
            return
        old = self._rule
        if not rule.window.same(old.window):
            self.sampled = SampledRate(rule.window.samples, rule.window.seconds)
        self._rule = rule
        self.observed = rule.observed
        self._set_tokens(rule, now)
        if rule.observed:
            self._owed_until = 0.0
        elif self._owed_until > now and old_limit != UNLIMITED:
            self._owed_until = now + (self._owed_until - now) * old_limit / limit

    def _set_tokens(self, rule: RateRule, now: float) -> None:
        burst = max(self.limit * rule.burst_seconds, rule.least_burst)
        tokens = self.tokens
        if not rule.paced:
            self.tokens = None
        elif tokens is None:
            self.tokens = TokenBucket(self.limit, burst)
        else:
            tokens.configure(self.limit, burst, now)

    def record(self, value: float, now: float, who: Identity | None = None) -> float:
        """Count a use; returns how long to wait now, in seconds, 0.0 when within the limit.

        With `who` (an Identity is one connection's) a debt of tokens is divided among those who made it.
        Otherwise each waits for all of it.
        """
        self.last_used = now
        self.sampled.record(value, now)
        rule = self._rule
        tokens = self.tokens
        if tokens is None:
            seconds = self._owed(self.sampled.throttle_seconds(self.limit, now), value, now)
        else:
            tokens.record(value, now)
            seconds = tokens.throttle_seconds(self.limit, now)
            if seconds > rule.max_debt_seconds:
                tokens.record((rule.max_debt_seconds - seconds) * self.limit, now)
            elif seconds <= 0.0:
                self._shares = None
            elif who is not None:
                seconds = self._share(who, min(value, seconds * self.limit), now)
        return min(seconds, rule.max_throttle_seconds)

    def wait(self, now: float) -> float:
        """How many seconds it takes until the bucket is within its limit again; 0.0 when it is."""
        if self.tokens is not None:
            return self.tokens.throttle_seconds(self.limit, now)
        if self.average is not None:
            return self.average.throttle_seconds(self.limit, now)
        return max(self.sampled.throttle_seconds(self.limit, now), self._owed_until - now, 0.0)

    def record_average(self, value: float, now: float) -> None:
        """Count a use, or take one back, in `average`; nobody waits."""
        self.last_used = now
        if self.average is not None:
            self.average.record(value, now)

    def measure(self, now: float) -> float:
        """The rate per second: Kafka's sampled rate, whatever rule limits, or the average."""
        return self.sampled.measure(now) if self.average is None else self.average.measure(now)

    def over(self, now: float) -> bool:
        """Whether more has been used than the limit lets."""
        if self.tokens is not None:
            return self.tokens.measure(now) < 0.0
        return self.measure(now) > self.limit

    def _share(self, who: Identity, tokens: float, now: float) -> float:
        """How long `who` waits for what it owes, these tokens included."""
        shares = self._shares
        if shares is None:
            shares = FairShare(now)
            self._shares = shares
        return shares.owe(who, tokens, self.limit, now)

    def _owed(self, seconds: float, value: float, now: float) -> float:
        """How long to wait by Kafka's rate, which forgets within its window: a wait that is cut short is
        remembered here, and while it lasts each use adds to it what it takes at the limit.
        """
        rule = self._rule
        if self._owed_until > now:
            self._owed_until += value / self.limit
            return self._owed_until - now
        if seconds > rule.max_throttle_seconds:
            self._owed_until = now + min(seconds, rule.max_debt_seconds)
        return seconds

    def count_throttle(self, seconds: float, requests: int, until: float) -> None:
        """Count a wait of so many seconds, by a request (1) or by one that was counted before (0)."""
        self.throttled_requests += requests
        self.throttle_seconds += seconds
        self.throttled_until = max(self.throttled_until, until)

    def count_observed(self, seconds: float, now: float) -> float:
        """Count a wait that nobody waits: as far as it goes beyond the one before, since a client that had
        waited would have made no request in between. Returns how many seconds that is.
        """
        until = now + seconds
        more = max(until - max(self.throttled_until, now), 0.0)
        self.count_throttle(more, 1, until)
        return more

    def idle(self, now: float) -> bool:
        return now - self.last_used >= IDLE_SECONDS

    def state(self, now: float) -> BucketState:
        return BucketState(
            quota=self.quota,
            user=self.user,
            client_id=self.client_id,
            limit=self.limit,
            rate=self.measure(now),
            throttled_until=self.throttled_until,
            throttled_requests=self.throttled_requests,
            throttle_seconds=self.throttle_seconds,
            mode=OBSERVE if self.observed else ENFORCE,
            ip=self.ip,
            tokens=None if self.tokens is None else self.tokens.measure(now),
            topic=self.topic,
            partition=self.partition,
        )
