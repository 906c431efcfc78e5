"""Rates: Kafka's four ways to measure a rate and to compute a throttle time.

All have the same methods:

    record(value, now)              count a use; a negative value takes some back
    measure(now)                    TokenBucket: the tokens; the others: the rate per second
    throttle_seconds(limit, now)    how long to wait; 0.0 at or within the limit

`now` is in seconds on any monotonic clock. A time before the latest one counts as the latest one. A use that
exceeds the limit is counted whole, and the wait follows it.

Kafka's clock has milliseconds. SampledRate, SimpleRate and EwmaRate round `now` to milliseconds. TokenBucket
rounds to microseconds, because a millisecond of a high rate is more than one request; on whole milliseconds
it computes what Kafka computes.
"""

import math
from typing import Final, final

from mypy_extensions import i64 as native

_NEVER: Final = 1 << 60
"""A time that is never reached, in milliseconds."""


@final
class _RoundedTime:
    """The last time that was rounded. All rates that a message concerns get the same `now`, so it is rounded
    once for all of them.
    """

    __slots__ = ("microseconds", "milliseconds", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self.milliseconds: native = 0
        self.microseconds = 0.0
        """A whole number, as a float: differences of times are exact, and need no conversion."""

    def round(self, now: float) -> None:
        self.milliseconds = math.floor(now * 1e3 + 0.5)
        self.microseconds = float(math.floor(now * 1e6 + 0.5))
        self.now = now


_ROUNDED: Final = _RoundedTime()


def _milliseconds(now: float) -> native:
    rounded = _ROUNDED
    if now != rounded.now:
        rounded.round(now)
    return rounded.milliseconds


def _microseconds(now: float) -> float:
    rounded = _ROUNDED
    if now != rounded.now:
        rounded.round(now)
    return rounded.microseconds


@final
class TokenBucket:
    """Tokens that refill at `rate` per second up to `burst` (KIP-599, Kafka's TokenBucket).

        tokens = min(burst, tokens + rate x elapsed);   wait = -tokens / rate

    It starts full. Kafka's starts with none at the epoch, which has the same effect. Tokens below zero are a
    debt, which has no bound.
    """

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = float(rate)
        self._burst = float(burst)
        self._tokens = self._burst
        self._now = -math.inf
        """The time of the last call: most calls for a message have the same."""
        self._last = -math.inf

    @property
    def at_least(self) -> float:
        """The tokens after the last call: there are at least as many now."""
        return self._tokens

    @property
    def burst(self) -> float:
        """The tokens of a client that has been idle."""
        return self._burst

    def configure(self, rate: float, burst: float, now: float) -> None:
        """Refill at another rate from `now` on. Tokens above the new burst are lost."""
        self._refill(now)
        self._rate = float(rate)
        self._burst = float(burst)
        self._tokens = min(self._burst, self._tokens)

    def inherit(self, others: list["TokenBucket"], now: float) -> None:
        """Take as many tokens as are missing from the others: all their debts, or what misses most."""
        left = [other.measure(now) for other in others]
        debts = sum([min(amount, 0.0) for amount in left])
        excess = self.measure(now) - (debts if debts < 0.0 else min(left, default=math.inf))
        if excess > 0.0:
            self.record(excess, now)

    def record(self, value: float, now: float) -> None:
        """Take tokens; a negative value returns some, up to the burst."""
        self._refill(now)
        tokens = self._tokens - value
        self._tokens = tokens if tokens < self._burst else self._burst

    def take(self, value: float, now: float) -> float:
        """Take tokens; return the time until the debt is refilled, as throttle_seconds()."""
        if now != self._now:
            self._refill(now)
        tokens = self._tokens - value
        if tokens > self._burst:
            tokens = self._burst
        self._tokens = tokens
        return 0.0 if tokens >= 0.0 else self._seconds_of_debt()

    def measure(self, now: float) -> float:
        """The tokens at `now`: at most the burst, below zero in debt."""
        self._refill(now)
        return self._tokens

    def full(self, now: float) -> bool:
        """Whether no token is missing."""
        self._refill(now)
        return self._tokens >= self._burst

    def throttle_seconds(self, limit: float, now: float) -> float:
        """The time until the debt is refilled, unrounded.

        It refills at the bucket's own rate, which is the limit; `limit` is unused.
        """
        self._refill(now)
        return 0.0 if self._tokens >= 0.0 else self._seconds_of_debt()

    def _seconds_of_debt(self) -> float:
        return -self._tokens / self._rate if self._rate > 0.0 else math.inf

    def _refill(self, now: float) -> None:
        if now == self._now:
            return
        self._now = now
        at = _microseconds(now)
        if at <= self._last:
            return
        if self._tokens < self._burst:
            # Whole numbers divided, as in Kafka: 1500000 / 1e6 is the float that Kafka has for 1500 / 1e3.
            tokens = self._tokens + self._rate * ((at - self._last) / 1e6)
            self._tokens = tokens if tokens < self._burst else self._burst
        self._last = at


@final
class _Sample:
    """A sample that is not the current one: its start, its last use, both in ms, and the sum of its uses."""

    __slots__ = ("last", "start", "value")

    def __init__(self, start: native, last: native, value: float) -> None:
        self.start: native = start
        self.last: native = last
        self.value = value

    def become(self, start: native, last: native, value: float) -> None:
        """Take the values of another sample."""
        self.start = start
        self.last = last
        self.value = value


_NO_SAMPLES: Final[list[_Sample]] = []
"""Shared by all rates that have no sample but the current one: most buckets of made-up client ids."""


class _Windowed:
    """A sum over samples (Kafka's SampledStat, 3.8 and later). Subclasses define what it is divided by.

    There is one sample more than `samples`, which overlaps the start of the window. A new sample starts with
    the first use after the current one is `window_seconds` old, so samples are not aligned to the clock. A
    sample is reset after `samples` windows without a use.

    The other samples change only when the current one is replaced or one of them is reset. Until then their
    sum, oldest start and next reset are cached: record() never walks the samples, and measure() rarely does.
    The sum is computed anew after each change, so that rounding errors do not add up.
    """

    def __init__(self, samples: int, window_seconds: float) -> None:
        if samples < 1:
            raise ValueError(f"samples is {samples}; it must be at least 1")
        window = _milliseconds(window_seconds)
        if window < 1:
            raise ValueError(f"window_seconds is {window_seconds}; it must be at least a millisecond")
        # The fields that record() uses come first, side by side. With thousands of tenants they are not in
        # the CPU's caches, and loading one more cache line costs as much as all of record().
        self._at: native = -_NEVER
        self._start: native = -_NEVER
        """The start of the current sample; the next two fields are its last use and its value."""
        self._last: native = -_NEVER
        self._value = 0.0
        self._window: Final[native] = window
        self._samples: Final[native] = samples
        self._expire_age: Final[native] = samples * window
        self._resting = _NO_SAMPLES
        """A ring buffer, once there are `samples` of them."""
        self._oldest = 0
        """The index of the oldest."""
        # The cache of the other samples; _unsummed: it is out of date.
        self._unsummed = False
        self._rest_value = 0.0
        self._rest_start: native = _NEVER
        self._rest_due: native = _NEVER

    @property
    def sample_ends(self) -> float:
        """Uses before this time belong to the current sample, to which they may be added later, as one."""
        return float(self._start + self._window - 1) / 1e3

    def record(self, value: float, now: float) -> None:
        """Count a use."""
        at = self._time(now)
        if at - self._start >= self._window:
            self._advance(at)
        self._value += value
        self._last = at

    def measure(self, now: float) -> float:
        """The rate per second over the window that ends at `now`; 0.0 before the first use."""
        self._purge(self._time(now))
        return (self._rest_value + self._value) / (float(self._divisor()) / 1e3)

    def throttle_seconds(self, limit: float, now: float) -> float:
        """(rate - limit) / limit x window (QuotaUtils.throttleTime), in whole ms; infinite if limit is 0."""
        return self.excess_seconds(limit, limit, now)

    def excess_seconds(self, mean_limit: float, limit: float, now: float) -> float:
        """The same for a limit that has changed: the rate is compared with its mean over covered_seconds(),
        and the excess is paid at the present limit.
        """
        rate = self.measure(now)
        if rate <= mean_limit:
            return 0.0
        if limit <= 0.0:
            return math.inf
        return math.floor((rate - mean_limit) / limit * float(self._divisor()) + 0.5) / 1e3

    def covered_seconds(self, now: float) -> float:
        """The time over which measure() is a mean."""
        self._purge(self._time(now))
        return float(self._divisor()) / 1e3

    def uses(self) -> list[tuple[float, float]]:
        """Each sample's last time and its sum. Recorded in this order, they make an equal rate."""
        if self._at == -_NEVER:
            return []
        samples = [*self._resting[self._oldest :], *self._resting[: self._oldest]]
        uses = [(float(sample.last) / 1e3, sample.value) for sample in samples if sample.value != 0.0]
        return [*uses, (float(self._last) / 1e3, self._value)]

    def _divisor(self) -> native:
        """The milliseconds by which the sum is divided. The samples have been purged."""
        raise NotImplementedError

    def _elapsed(self) -> native:
        """Milliseconds since the oldest sample started."""
        return self._at - min(self._start, self._rest_start)

    def _time(self, now: float) -> native:
        at = _milliseconds(now)
        if at <= self._at:
            return self._at
        if self._at == -_NEVER:
            # The first call starts the first sample, even if it is measure(), as in Kafka.
            self._begin(at)
        self._at = at
        return at

    def _begin(self, at: native) -> None:
        """Start a new current sample."""
        self._start = self._last = at
        self._value = 0.0

    def _advance(self, at: native) -> None:
        """Replace the oldest of the other samples with the current one, and start a new current one."""
        resting = self._resting
        if len(resting) < self._samples:
            if not resting:
                resting = self._resting = []
            resting.append(_Sample(self._start, self._last, self._value))
        else:
            resting[self._oldest].become(self._start, self._last, self._value)
            self._oldest = (self._oldest + 1) % self._samples
        self._begin(at)
        self._unsummed = True

    def _purge(self, at: native) -> None:
        if self._unsummed:
            self._sum_up()
        if at - self._last >= self._expire_age:
            self._begin(at)
        if at < self._rest_due:
            return
        for sample in self._resting:
            if at - sample.last >= self._expire_age:
                sample.become(at, at, 0.0)
        self._sum_up()

    def _sum_up(self) -> None:
        self._unsummed = False
        self._rest_value = 0.0
        self._rest_start = self._rest_due = _NEVER
        for sample in self._resting:
            self._rest_value += sample.value
            self._rest_start = min(self._rest_start, sample.start)
            self._rest_due = min(self._rest_due, sample.last + self._expire_age)


@final
class SampledRate(_Windowed):
    """Kafka's Rate: produce, fetch, request and connection quotas (KIP-13).

    The sum is divided by the time since the oldest sample began, but by no less than `samples` - 1 whole
    windows (Rate.windowSize). So a client that was idle may use `samples` - 1 windows' worth at once.
    """

    def _divisor(self) -> native:
        elapsed = self._elapsed()
        missing = self._samples - 1 - elapsed // self._window
        if missing > 0:
            elapsed += missing * self._window
        return max(elapsed, 1)


@final
class SimpleRate(_Windowed):
    """Kafka's SimpleRate: replication quotas (KIP-73).

    The sum is divided by the time since the oldest sample began, but by no less than one window. So the rate
    reacts within one window.
    """

    def _divisor(self) -> native:
        return max(self._elapsed(), self._window)


@final
class EwmaRate:
    """The exponentially weighted moving average of Kafka's broker meters (Yammer's OneMinuteRate).

        every tick:  average += (1 - exp(-tick_seconds / window_seconds)) x (rate since last tick - average)

    The first tick is `tick_seconds` after the first call, and sets the average to the rate. Between ticks the
    average does not change.
    """

    def __init__(self, window_seconds: float = 60.0, tick_seconds: float = 5.0) -> None:
        self._tick: Final[native] = _milliseconds(tick_seconds)
        if self._tick < 1 or window_seconds <= 0.0:
            raise ValueError(
                f"window_seconds is {window_seconds}, tick_seconds {tick_seconds}; both are above 0"
            )
        self._kept: Final = math.exp(-float(self._tick) / 1e3 / window_seconds)
        """The fraction of the average that a tick keeps."""
        self._rate = 0.0
        """The average per second at the last tick."""
        self._uncounted = 0.0
        """The uses since the last tick."""
        self._ticked = False
        self._at: native = -_NEVER
        self._last_tick: native = -_NEVER

    def record(self, value: float, now: float) -> None:
        """Count a use; it enters the average at the next tick."""
        self._catch_up(now)
        self._uncounted += value

    def measure(self, now: float) -> float:
        """The average per second at the last tick; 0.0 before the first."""
        self._catch_up(now)
        return self._rate

    def throttle_seconds(self, limit: float, now: float) -> float:
        """The time until the tick at which the average is at the limit again, without further uses.

        Infinite at a limit of 0, which the average never reaches.
        """
        self._catch_up(now)
        if self._rate <= limit:
            return 0.0
        if limit <= 0.0:
            return math.inf
        ticks: native = 1
        rate = self._after_tick()
        if rate > limit:
            ticks += math.ceil(math.log(limit / rate) / math.log(self._kept))
        return float(self._last_tick + ticks * self._tick - self._at) / 1e3

    def _after_tick(self) -> float:
        rate = self._uncounted / (float(self._tick) / 1e3)
        return rate + self._kept * (self._rate - rate) if self._ticked else rate

    def _catch_up(self, now: float) -> None:
        at = _milliseconds(now)
        if at <= self._at:
            return
        self._at = at
        if self._last_tick == -_NEVER:
            self._last_tick = at
        if at - self._last_tick < self._tick:
            return
        ticks = (at - self._last_tick) // self._tick
        self._rate = self._after_tick() * self._kept ** float(ticks - 1)
        self._ticked = True
        self._uncounted = 0.0
        self._last_tick += ticks * self._tick
