"""WindowLimit: how Kafka's sampled rate limits a bucket."""

import math
from typing import final

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import RateWindow
from proxy.quota.measure.fair_share import Debtors
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.measure.rates import TokenBucket


@final
class WindowLimit:
    """What clients of one bucket owe besides the wait by Kafka's rate, which the caller passes as `seconds`.

    Kafka's rate forgets a use after its window. If a wait is longer than that, or max_throttle_seconds
    shortens it, its end is remembered here, and each use until then postpones it by value / limit seconds.
    """

    __slots__ = ("_debtors", "_mean_part", "_owed_until", "_part", "_part_at", "allowance")

    def __init__(self) -> None:
        self._owed_until = 0.0
        """The end of the longest wait that Kafka's rate would forget."""
        self.allowance: TokenBucket | None = None
        """What a rule that repays allows besides Kafka's rate: a whole window's worth, refilled at the limit;
        None for other rules.
        """
        self._debtors: Debtors | None = None
        """The connections that have used the bucket since it has been over its limit; None if it is not."""
        self._part = 1.0
        """The part of the limit that this process may use."""
        self._mean_part = 1.0
        """mean_part() at the last change of the part."""
        self._part_at = -math.inf
        """The time of the last change."""

    def share(self, part: float, window: RateWindow, used: bool, now: float) -> None:
        """Set the part of the limit that this process may use from now on. `used`: whether it used any."""
        if part == self._part:
            return
        self._mean_part = self.mean_part(window, now) if used else part
        self._part = part
        self._part_at = now

    def mean_part(self, window: RateWindow, now: float) -> float:
        """The approximate mean of the parts that this process had during the window of Kafka's rate.

        The rate is a mean over the window, too. If it were compared with the part of the moment, a process
        whose part grows could use a whole window's worth at once, which other processes have used already,
        and one whose part becomes smaller would have to wait for most of a window.
        """
        elapsed = now - self._part_at
        if elapsed >= window.burst_seconds:
            return self._part
        return self._mean_part + (self._part - self._mean_part) * elapsed / window.burst_seconds

    def configure(self, limit: float, rule: RateRule, now: float) -> None:
        """Set a new limit or rule. What is owed stays, unless the bucket is only observed."""
        burst = limit * rule.window.burst_seconds
        if not rule.repays:
            self.allowance = None
        elif self.allowance is None:
            self.allowance = TokenBucket(limit, burst)
        else:
            self.allowance.configure(limit, burst, now)
        if rule.observed:
            self._owed_until = 0.0

    def rescale(self, old_limit: float, limit: float, now: float) -> None:
        """Pay the rest of a wait at a new limit."""
        if self._owed_until > now:
            self._owed_until = now + (self._owed_until - now) * old_limit / limit

    def record(self, value: float, seconds: float, limit: float, rule: RateRule, now: float) -> float:
        """Count a use, which Kafka's rate has counted; return the wait."""
        seconds = self._owed(value, seconds, limit, rule, now)
        allowance = self.allowance
        if allowance is not None:
            allowance.record(value, now)
            seconds = max(seconds, allowance.throttle_seconds(limit, now))
        return seconds

    def _owed(self, value: float, seconds: float, limit: float, rule: RateRule, now: float) -> float:
        """The wait by Kafka's rate, or until the end of an earlier wait."""
        if self._owed_until > now:
            self._owed_until += value / limit
            return self._owed_until - now
        if seconds > min(rule.max_throttle_seconds, rule.window.total_seconds):
            self._owed_until = now + min(seconds, rule.max_debt_seconds)
        return seconds

    def ahead_seconds(self, who: Identity, value: float, seconds: float, limit: float) -> float:
        """How much of the wait after a use is for earlier uses, if the connection has made none of them, but
        another one of its user has; otherwise 0.0. See Bucket.ahead_seconds.
        """
        if seconds <= 0.0:
            self._debtors = None
            return 0.0
        debtors = self._debtors
        if debtors is None:
            debtors = self._debtors = Debtors()
        return max(seconds - value / limit, 0.0) if debtors.new(who) else 0.0

    def wait(self, seconds: float, limit: float, now: float) -> float:
        """The seconds until the bucket is within its limit; 0.0 if it is."""
        seconds = max(seconds, self._owed_until - now, 0.0)
        allowance = self.allowance
        return seconds if allowance is None else max(seconds, allowance.throttle_seconds(limit, now))

    def as_new(self, now: float) -> bool:
        """Whether nothing is owed."""
        return self._owed_until <= now and (self.allowance is None or self.allowance.full(now))

    def give_back(self, value: float, limit: float, now: float) -> None:
        """Take back a use that has not happened."""
        if self._owed_until > now:
            self._owed_until -= value / limit
        if self.allowance is not None:
            self.allowance.record(-value, now)

    def inherit(self, others: list["WindowLimit"], now: float) -> None:
        """Owe what is owed to the others, too."""
        if self.allowance is not None:
            allowances = [other.allowance for other in others]
            self.allowance.inherit([each for each in allowances if each is not None], now)
        owed = sum([max(other._owed_until - now, 0.0) for other in others])
        self._owed_until = max(self._owed_until, now + owed) if owed > 0.0 else 0.0
