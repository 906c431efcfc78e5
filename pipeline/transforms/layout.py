"""When, in an interval of which only the sums are known, a client sent what it sent.

Without throttling: evenly. With it: in cycles. A burst passes, as much as a full bucket has and what refills
meanwhile; then come the requests that waited, at the rate of the limit that held them, which is their bytes
by the time they waited. The time that all bytes take at the limit, without the time waited, was free: so many
times a full bucket's is how many bursts there were, and what is over says how long each took.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

AT_ONCE: Final = 0.0
"""Each request comes as soon as the one before has waited: the rule itself spaces them."""
AS_THEY_CAME: Final = 0.9
"""Nearly at the rate that there was: exactly so, a bucket that is not quite empty would never be."""
Step = tuple[float, float]
"""Seconds, and bytes sent at that time."""
_NEARLY_ALL: Final = 0.9
_LEAST_OF_TRIED: Final = 0.95
_MOST_OF_TRIED: Final = 1.25
"""The limit is seen a little too high: the first request that waits waits only for what was lacking."""


@dataclass(frozen=True, slots=True)
class Interval:
    """One connection's sums: seconds, bytes, requests (all and those that waited), and seconds waited."""

    start: float
    length: float
    size: float
    requests: float
    throttled: float
    throttle_seconds: float
    goes_on: bool = False
    """Whether the waiting begins in this interval, and goes on in the next: it then is at the end of this."""


def connections_of(throttled: int, throttle_ms: float, interval_ms: float) -> int:
    """On how many connections at a time so many requests waited, which is all that is known of them.

    One connection begins waits that last together as long as the interval, and half of one more.
    """
    if throttled <= 0 or throttle_ms <= 0:
        return 1
    each = throttle_ms / throttled
    if each >= interval_ms:
        return throttled
    return max(1, round(throttle_ms / (interval_ms + each / 2)))


def held_at(intervals: Sequence[tuple[Interval, int]], tried: float) -> float:
    """Bytes/s of the limit that made a tenant wait, on so many connections in each interval; 0.0 for none.

    While it waits it gets its bytes at that limit. Intervals in which all requests waited say it best, since
    requests are not of one size. What is near the limit that is `tried` is taken for that.
    """
    waiting = [each for each in intervals if each[0].throttled > 0 and each[0].throttle_seconds > 0]
    full = [each for each in waiting if each[0].throttled >= each[0].requests * _NEARLY_ALL]
    size = sum(each.size * each.throttled / each.requests * count for each, count in full or waiting)
    seconds = sum(each.throttle_seconds for each, _ in full or waiting)
    if seconds <= 0 or size <= 0:
        return 0.0
    limit = size / seconds
    return tried if _LEAST_OF_TRIED <= limit / tried <= _MOST_OF_TRIED else limit


def lay_out(
    interval: Interval, limit: float, eager: float, burst_seconds: float, per_step: float
) -> Iterator[Step]:
    """The interval's steps, ascending, each of `per_step` bytes at most or else of a single request.

    `limit`: bytes/s that the connection was held to. `burst_seconds`: what a full bucket lets pass at once,
    of the limit. `eager`: over which part of the time that requests waited they come.
    """
    throttled = min(interval.throttled, interval.requests)
    if throttled <= 0 or interval.throttle_seconds <= 0 or interval.size <= 0 or limit <= 0:
        yield from _spread(interval.start, interval.length, interval.size, interval.requests, per_step)
        return
    waited = min(interval.size, limit * interval.throttle_seconds)
    passed = interval.size - waited
    free_seconds = passed / limit
    cycles = max(1, math.floor(free_seconds / burst_seconds))
    passing = max(0.0, free_seconds / cycles - burst_seconds)
    waits = min(interval.throttle_seconds, interval.length) / cycles
    # What does not fit was not so regular; nothing may spill into the next cycle.
    passing = min(passing, max(interval.length / cycles - waits, 0.0))
    rest = interval.length / cycles - passing - waits if interval.goes_on else 0.0
    for cycle in range(cycles):
        begin = interval.start + interval.length * cycle / cycles + rest
        if passed > 0:
            unthrottled = max(interval.requests - throttled, 1.0) / cycles
            # From end to end: what refills before the first comes is lost on a full bucket.
            count = max(2, min(round(unthrottled), math.ceil(passed / cycles / per_step)))
            for place in range(count):
                yield begin + passing * place / (count - 1), passed / cycles / count
        yield from _spread(begin + passing, eager * waits, waited / cycles, throttled / cycles, per_step)


def _spread(start: float, length: float, size: float, requests: float, per_step: float) -> Iterator[Step]:
    count = max(1, min(round(requests), math.ceil(size / per_step)))
    for place in range(count):
        yield start + length * place / count, size / count
