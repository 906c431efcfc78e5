"""Rates: the four ways in which Kafka measures a flow and says how long to wait.

All have the same shape:

    record(value, now)              count a use; a negative value gives some back
    measure(now)                    TokenBucket: its tokens; the others: the rate per second
    throttle_seconds(limit, now)    how long to wait; 0.0 when within the limit or right at it

`now` is in seconds on any monotonic clock. A time before the latest one seen counts as that latest one.
Recording never rejects: a use that breaks the limit is counted whole, and the wait comes after it.

Kafka's clock has whole milliseconds. SampledRate, SimpleRate and EwmaRate take `now` to the nearest
millisecond; TokenBucket to the nearest microsecond, so that pacing is smooth, and on whole milliseconds it
computes what Kafka does.
"""

import math
from typing import Final, final

from mypy_extensions import i64 as native

_NEVER: Final = 1 << 60
"""A time that never comes, in milliseconds or microseconds."""


def _milliseconds(now: float) -> native:
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
        self._last: native = -_NEVER

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
        at: native = math.floor(now * 1e6 + 0.5)
        if at <= self._last:
            return
        if self._tokens < self._burst:
            # Dividing whole numbers gives the same float for 1500000 / 1e6 as Kafka gets for 1500 ms.
            tokens = self._tokens + self._rate * (float(at - self._last) / 1e6)
            self._tokens = tokens if tokens < self._burst else self._burst
        self._last = at


@final
class _Sample:
    """A resting sample of a rate: two times in ms, and the sum of the uses."""

    __slots__ = ("last", "start", "value")

    def __init__(self, start: native, last: native, value: float) -> None:
        self.start: native = start
        self.last: native = last
        self.value = value

    def become(self, start: native, last: native, value: float) -> None:
        """Hold another sample."""
        self.start = start
        self.last = last
        self.value = value


class _Windowed:
    """A rate over samples; what it is divided by is left to the rate (Kafka's SampledStat, 3.8 and later).

    There is one sample more than `samples`, for the one that overlaps the start of the window. A sample
    starts when a use finds the current one `window_seconds` old, so samples are not aligned to anything. A
    sample is reset when no use came to it for `samples` windows.

    All but the current sample rest between resets: their sum, their oldest start, and when the first of them
    is due are kept, so that measuring again and again does not walk them, and recording never does. The
    sum is made afresh when it is asked for after another sample has become the current one, so no error adds
    up.
    """

    def __init__(self, samples: int, window_seconds: float) -> None:
        if samples < 1:
            raise ValueError(f"samples is {samples}; it must be at least 1")
        window = _milliseconds(window_seconds)
        if window < 1:
            raise ValueError(f"window_seconds is {window_seconds}; it must be at least a millisecond")
        # What record() touches comes first, and side by side: the rates of thousands of tenants are in no
        # cache, and each line of memory costs as much as all the counting.
        self._at: native = -_NEVER
        self._start: native = -_NEVER
        """Of the current sample, like the next two."""
        self._last: native = -_NEVER
        self._value = 0.0
        self._window: Final[native] = window
        self._samples: Final[native] = samples
        self._expire_age: Final[native] = samples * window
        self._resting: Final[list[_Sample]] = []
        """A ring, once there are `samples` of them."""
        self._oldest = 0
        """Where in the ring the oldest is."""
        # The resting samples; not summed up since the current one changed.
        self._unsummed = False
        self._rest_value = 0.0
        self._rest_start: native = _NEVER
        self._rest_due: native = _NEVER

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
        """(rate - limit) / limit x window, to the millisecond (half rounds up); infinite at a limit of 0."""
        rate = self.measure(now)
        if rate <= limit:
            return 0.0
        if limit <= 0.0:
            return math.inf
        return math.floor((rate - limit) / limit * float(self._divisor()) + 0.5) / 1e3

    def _divisor(self) -> native:
        """What the sum is divided by to get a rate, in milliseconds; the samples are purged."""
        raise NotImplementedError

    def _elapsed(self) -> native:
        """Milliseconds since the oldest sample started."""
        return self._at - min(self._start, self._rest_start)

    def _time(self, now: float) -> native:
        at = _milliseconds(now)
        if at <= self._at:
            return self._at
        if self._at == -_NEVER:
            # The first call starts the first sample, be it a measurement, as in Kafka.
            self._begin(at)
        self._at = at
        return at

    def _begin(self, at: native) -> None:
        """Start the current sample anew."""
        self._start = self._last = at
        self._value = 0.0

    def _advance(self, at: native) -> None:
        """The current sample comes to rest, in place of the oldest one, and another begins."""
        resting = self._resting
        if len(resting) < self._samples:
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

    Divided by the time since the oldest sample; where that is short of `samples` - 1 whole windows, the
    missing ones are taken as passed and empty. A new or long idle rate therefore lets `samples` - 1 windows'
    worth through at once.
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

    Divided by the time since the oldest sample, one window at least, so that it rises within one window.
    """

    def _divisor(self) -> native:
        return max(self._elapsed(), self._window)


@final
class EwmaRate:
    """The moving average of Kafka's broker meters (Yammer's one-minute rate): broker-side quotas.

    Every `tick_seconds` from the first call on, the average moves towards the rate since the last tick by
    1 - exp(-tick_seconds / window_seconds); the first tick sets it. Between ticks it stands still.
    """

    def __init__(self, window_seconds: float = 60.0, tick_seconds: float = 5.0) -> None:
        self._tick: Final[int] = _milliseconds(tick_seconds)
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
