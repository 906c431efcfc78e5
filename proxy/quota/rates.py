"""Rates: the four ways in which Kafka measures a flow and says how long to wait.

All have the same shape:

    record(value, now)              count a use; a negative value gives some back
    measure(now)                    TokenBucket: its tokens; the others: the rate per second
    throttle_seconds(limit, now)    how long to wait; 0.0 when within the limit or right at it

`now` is in seconds on any monotonic clock. A time before the latest one seen counts as that latest one.
Recording never refuses: a use that breaks the limit is counted whole, and the wait comes after it.

Kafka's clock has whole milliseconds. SampledRate, SimpleRate and EwmaRate take `now` to the nearest
millisecond; TokenBucket to the nearest microsecond, so that pacing is smooth, and on whole milliseconds it
computes what Kafka does.
"""

import math
from typing import Final, final

_NEVER: Final = 1 << 60
"""A time that never comes, in milliseconds or microseconds."""


def _milliseconds(now: float) -> int:
    return math.floor(now * 1e3 + 0.5)


@final
class TokenBucket:
    """Tokens that refill at `rate` per second up to `burst` (KIP-599, Kafka's TokenBucket).

    It starts full: Kafka's starts empty at the epoch, which comes to the same. Tokens may go below zero
    without end; that is a debt, and zero is none.
    """

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = float(rate)
        self._burst = float(burst)
        self._tokens = self._burst
        self._last = -_NEVER

    def configure(self, rate: float, burst: float, now: float) -> None:
        """From `now` on refill at another rate. Tokens stay, but for those above the new burst."""
        self._refill(now)
        self._rate = float(rate)
        self._burst = float(burst)
        self._tokens = min(self._burst, self._tokens)

    def record(self, value: float, now: float) -> None:
        """Take tokens; a negative value gives some back, up to the burst."""
        self._refill(now)
        tokens = self._tokens - value
        self._tokens = tokens if tokens < self._burst else self._burst

    def measure(self, now: float) -> float:
        """The tokens at `now`: at most the burst, negative after an overdraft."""
        self._refill(now)
        return self._tokens

    def throttle_seconds(self, limit: float, now: float) -> float:
        """How long until the debt is refilled, unrounded.

        It refills at the bucket's own rate, which is the limit; `limit` is there for the common shape.
        """
        self._refill(now)
        if self._tokens >= 0.0:
            return 0.0
        return -self._tokens / self._rate if self._rate > 0.0 else math.inf

    def _refill(self, now: float) -> None:
        at = math.floor(now * 1e6 + 0.5)
        if at <= self._last:
            return
        if self._tokens < self._burst:
            # Dividing whole numbers gives the same float for 1500000 / 1e6 as Kafka gets for 1500 ms.
            tokens = self._tokens + self._rate * ((at - self._last) / 1e6)
            self._tokens = tokens if tokens < self._burst else self._burst
        self._last = at


@final
class _Sample:
    """One sample of a rate: two times in ms, and the sum of the uses."""

    __slots__ = ("last", "start", "value")

    def __init__(self, at: int) -> None:
        self.start = at
        self.last = at
        self.value = 0.0

    def begin(self, at: int) -> None:
        """Start anew."""
        self.start = self.last = at
        self.value = 0.0


class _Windowed:
    """A rate over a ring of samples; what it is divided by is left to the rate (Kafka's SampledStat, 3.8 and
    later).

    The ring has one slot more than `samples`, for the sample that overlaps the start of the window. A sample
    starts when a use finds the current one `window_seconds` old, so samples are not aligned to anything. A
    sample is reset when no use came to it for `samples` windows.

    All but the current sample rest between resets: their sum, their oldest start, and when the first of them
    is due are kept, so that measuring again and again does not walk the ring, and recording never does. The
    sum is made afresh when it is asked for after the current sample has changed, so no error adds up.
    """

    def __init__(self, samples: int, window_seconds: float) -> None:
        if samples < 1:
            raise ValueError(f"samples is {samples}; it must be at least 1")
        self._samples: Final = samples
        self._window: Final = _milliseconds(window_seconds)
        if self._window < 1:
            raise ValueError(f"window_seconds is {window_seconds}; it must be at least a millisecond")
        self._expire_age: Final = samples * self._window
        self._at = -_NEVER
        self._ring: Final[list[_Sample]] = []
        self._current = 0
        """Where in it the current sample is."""
        self._sample = _Sample(0)
        # The resting samples; not summed up since the current one changed.
        self._unsummed = False
        self._rest_value = 0.0
        self._rest_start = _NEVER
        self._rest_due = _NEVER

    def record(self, value: float, now: float) -> None:
        """Count a use."""
        at = self._time(now)
        if at - self._sample.start >= self._window:
            self._advance(at)
        sample = self._sample
        sample.value += value
        sample.last = at

    def measure(self, now: float) -> float:
        """The rate per second over the window that ends at `now`; 0.0 before the first use."""
        self._purge(self._time(now))
        return (self._rest_value + self._sample.value) / (self._divisor() / 1e3)

    def throttle_seconds(self, limit: float, now: float) -> float:
        """(rate - limit) / limit x window, to the millisecond (half rounds up); infinite at a limit of 0."""
        rate = self.measure(now)
        if rate <= limit:
            return 0.0
        if limit <= 0.0:
            return math.inf
        return math.floor((rate - limit) / limit * self._divisor() + 0.5) / 1e3

    def _divisor(self) -> int:
        """What the sum is divided by to get a rate, in milliseconds; the samples are purged."""
        raise NotImplementedError

    def _elapsed(self) -> int:
        """Milliseconds since the oldest sample started."""
        return self._at - min(self._sample.start, self._rest_start)

    def _time(self, now: float) -> int:
        at = _milliseconds(now)
        if at <= self._at:
            return self._at
        self._at = at
        if not self._ring:
            # The first call starts the first sample, be it a measurement, as in Kafka.
            self._sample.begin(at)
            self._ring.append(self._sample)
        return at

    def _advance(self, at: int) -> None:
        self._current = (self._current + 1) % (self._samples + 1)
        if self._current == len(self._ring):
            self._ring.append(_Sample(at))
        self._sample = self._ring[self._current]
        self._sample.begin(at)
        self._unsummed = True

    def _purge(self, at: int) -> None:
        if self._unsummed:
            self._sum_up()
        if at < self._rest_due and at - self._sample.last < self._expire_age:
            return
        for sample in self._ring:
            if at - sample.last >= self._expire_age:
                sample.begin(at)
        self._sum_up()

    def _sum_up(self) -> None:
        self._unsummed = False
        self._rest_value = 0.0
        self._rest_start = self._rest_due = _NEVER
        for sample in self._ring:
            if sample is not self._sample:
                self._rest_value += sample.value
                self._rest_start = min(self._rest_start, sample.start)
                self._rest_due = min(self._rest_due, sample.last + self._expire_age)


@final
class SampledRate(_Windowed):
    """Kafka's Rate: produce, fetch, request and connection quotas (KIP-13).

    Divided by the time since the oldest sample; where that is short of `samples` - 1 whole windows, the
    missing ones are taken as passed and empty. A new or long idle rate therefore lets `samples` - 1 windows'
    worth through at once.
    """

    def _divisor(self) -> int:
        elapsed = self._elapsed()
        missing = self._samples - 1 - elapsed // self._window
        if missing > 0:
            elapsed += missing * self._window
        return max(elapsed, 1)


@final
class SimpleRate(_Windowed):
    """Kafka's SimpleRate: replication quotas (KIP-73).

    Divided by the time since the oldest sample, one window at least, so that it rises within one window.
    """

    def _divisor(self) -> int:
        return max(self._elapsed(), self._window)


@final
class EwmaRate:
    """The moving average of Kafka's broker meters (Yammer's one-minute rate): broker-side quotas.

    Every `tick_seconds` from the first call on, the average moves towards the rate since the last tick by
    1 - exp(-tick_seconds / window_seconds); the first tick sets it. Between ticks it stands still.
    """

    def __init__(self, window_seconds: float = 60.0, tick_seconds: float = 5.0) -> None:
        self._tick: Final = _milliseconds(tick_seconds)
        if self._tick < 1 or window_seconds <= 0.0:
            raise ValueError(
                f"window_seconds is {window_seconds}, tick_seconds {tick_seconds}; both are above 0"
            )
        self._kept: Final = math.exp(-self._tick / 1e3 / window_seconds)
        self._rate = 0.0
        self._uncounted = 0.0
        self._ticked = False
        self._at = -_NEVER
        self._last_tick = -_NEVER

    def record(self, value: float, now: float) -> None:
        """Count a use; the next tick brings it into the average."""
        self._catch_up(now)
        self._uncounted += value

    def measure(self, now: float) -> float:
        """The average rate per second as of the last tick; 0.0 before the first."""
        self._catch_up(now)
        return self._rate

    def throttle_seconds(self, limit: float, now: float) -> float:
        """How long until the tick at which the average is back at the limit, if no more is recorded.

        Infinite at a limit of 0, which an average never reaches.
        """
        self._catch_up(now)
        if self._rate <= limit:
            return 0.0
        if limit <= 0.0:
            return math.inf
        ticks = 1
        rate = self._after_tick()
        if rate > limit:
            ticks += math.ceil(math.log(limit / rate) / math.log(self._kept))
        return (self._last_tick + ticks * self._tick - self._at) / 1e3

    def _after_tick(self) -> float:
        rate = self._uncounted / (self._tick / 1e3)
        return rate + self._kept * (self._rate - rate) if self._ticked else rate

    def _catch_up(self, now: float) -> None:
        at = _milliseconds(now)
        if at <= self._at:
            return
        self._at = at
        if self._last_tick == -_NEVER:
            self._last_tick = at
        ticks = (at - self._last_tick) // self._tick
        if ticks > 0:
            self._rate = self._after_tick() * self._kept ** (ticks - 1)
            self._ticked = True
            self._uncounted = 0.0
            self._last_tick += ticks * self._tick
