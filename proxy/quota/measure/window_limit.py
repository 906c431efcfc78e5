"""WindowLimit: how Kafka's sampled rate limits a bucket."""

from typing import final

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import RateWindow
from proxy.quota.measure.fair_share import Debtors
from proxy.quota.measure.part_history import PartHistory
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.measure.rates import TokenBucket


@final
class WindowLimit:
    """What clients of one bucket owe besides the wait by Kafka's rate, which the caller passes as `seconds`.

    Kafka's rate forgets a use after its window. If a wait is longer than that, or max_throttle_seconds
    shortens it, its end is remembered here, and each use until then postpones it by value / limit seconds.
    """

    __slots__ = ("_debtors", "_owed_until", "_parts", "allowance")

    def __init__(self) -> None:
        self._owed_until = 0.0
        """The end of the longest wait that Kafka's rate would forget."""
        self.allowance: TokenBucket | None = None
        """What a rule that repays allows besides Kafka's rate: a whole window's worth, refilled at the limit;
        None for other rules.
        """
        self._debtors: Debtors | None = None
        """The connections that have used the bucket since it has been over its limit; None if it is not."""
        self._parts: PartHistory | None = None
        """The parts of the limit that this process might use; None before it had a part."""

    def share(self, part: float, window: RateWindow, used: bool, now: float) -> None:
        """Set the part of the limit that this process may use from now on. `used`: whether it used any.

        The first part counts as the one of all time before, unless some of the whole limit was used.
        """
        parts = self._parts
        if parts is None:
            if part == 1.0:
                return
            parts = self._parts = PartHistory(1.0 if used else part)
        if part != parts.part:
            parts.change(part, now, window.total_seconds + window.seconds)

    @property
    def shared(self) -> bool:
        """Whether this process has had a part."""
        return self._parts is not None

    def mean_part(self, seconds: float, now: float) -> float:
        """The mean of the parts that this process had during the last seconds, which Kafka's rate covers.

        The rate is a mean over the same time. If it were compared with the part of the moment, a process
        whose part grows could use a whole window's worth at once, which other processes have used already,
        and one whose part becomes smaller would have to wait for most of a window. What all processes may use
        during a window is the sum of these means, which is at most the limit.
        """
        parts = self._parts
        return 1.0 if parts is None else parts.mean(seconds, now)

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
        """The wait by Kafka's rate, or until the end of an earlier wait if that is later."""
        if self._owed_until > now:
            self._owed_until += value / limit
            return max(self._owed_until - now, seconds)
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
