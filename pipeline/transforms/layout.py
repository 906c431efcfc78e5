"""Reconstructs when a client sent its bytes within an interval of which only the sums are known.

Without throttling, bytes are spread evenly. With throttling, they come in cycles: a burst passes without a
wait (the content of a full bucket, and what refills meanwhile), then requests wait, at the rate of the limit
(their bytes divided by the time waited). The time that all bytes take at the limit, less the time waited, was
free of waits. Divided by the time of a full bucket, it gives the number of bursts; the remainder gives their
length.

If throttling begins after less than a full bucket, the interval before it has used the rest. Its bytes then
come at its end, as fast as that takes.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

AT_ONCE: Final = 0.0
"""A request comes when the wait of the previous one ends: the limit itself spaces them."""
AS_THEY_CAME: Final = 0.9
"""Slightly faster than the recorded rate: at exactly that rate, a nearly empty bucket would never become
empty.
"""
Step = tuple[float, float]
"""Time in seconds, and the bytes sent then."""
_NEARLY_ALL: Final = 0.9
_LEAST_OF_TRIED: Final = 0.95
_MOST_OF_TRIED: Final = 1.25
"""The measured limit is slightly too high, because the first throttled request waits only for what the bucket
lacks.
"""


@dataclass(frozen=True, slots=True)
class Interval:
    """The sums of one connection: seconds, bytes, requests, throttled requests, and seconds waited."""

    start: float
    length: float
    size: float
    requests: float
    throttled: float
    throttle_seconds: float
    goes_on: bool = False
    """Whether throttling begins in this interval and continues in the next; it is then placed at the end."""
    upcoming: tuple[float, float] | None = None
    """If nothing waits in this interval, and throttling begins in the next: the bytes of all connections in
    the next one, and the seconds that each of them waits.
    """


def connections_of(throttled: int, throttle_ms: float, interval_ms: float) -> int:
    """Estimate the number of connections that waited at a time, from the sums of an interval.

    One connection begins waits that last together as long as the interval and half of one more wait.
    """
    if throttled <= 0 or throttle_ms <= 0:
        return 1
    each = throttle_ms / throttled
    if each >= interval_ms:
        return throttled
    return max(1, round(throttle_ms / (interval_ms + each / 2)))


def throttled_rate(intervals: Sequence[tuple[Interval, int]], tried: float) -> float:
    """Estimate the limit in bytes/s that throttled a tenant; 0.0 if none did.

    A throttled tenant receives its bytes at the rate of the limit. Intervals in which every request waited
    give the best estimate, because requests differ in size. An estimate near the `tried` limit is taken as
    that limit.
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
    """Yield the steps of the interval in order, each of at most `per_step` bytes or of a single request.

    `limit`: the connection's limit in bytes/s. `burst_seconds`: the content of a full bucket, in seconds at
    the limit. `eager`: the part of the waiting time over which the throttled requests are spread.
    """
    throttled = min(interval.throttled, interval.requests)
    if throttled <= 0 or interval.throttle_seconds <= 0 or interval.size <= 0 or limit <= 0:
        seconds = _unthrottled_seconds(interval, limit, burst_seconds)
        begin = interval.start + interval.length - seconds
        yield from _spread(begin, seconds, interval.size, interval.requests, per_step)
        return
    waited = min(interval.size, limit * interval.throttle_seconds)
    passed = interval.size - waited
    free_seconds = passed / limit
    cycles = max(1, math.floor(free_seconds / burst_seconds))
    passing = max(0.0, free_seconds / cycles - burst_seconds)
    waits = min(interval.throttle_seconds, interval.length) / cycles
    # The traffic was less regular than assumed; a cycle must not spill into the next.
    passing = min(passing, max(interval.length / cycles - waits, 0.0))
    rest = interval.length / cycles - passing - waits if interval.goes_on else 0.0
    for cycle in range(cycles):
        begin = interval.start + interval.length * cycle / cycles + rest
        if passed > 0:
            unthrottled = max(interval.requests - throttled, 1.0) / cycles
            # Over the whole time: a full bucket does not refill before the first request.
            count = max(2, min(round(unthrottled), math.ceil(passed / cycles / per_step)))
            for place in range(count):
                yield begin + passing * place / (count - 1), passed / cycles / count
        yield from _spread(begin + passing, eager * waits, waited / cycles, throttled / cycles, per_step)


def _unthrottled_seconds(interval: Interval, limit: float, burst_seconds: float) -> float:
    """Return how long the bytes of an unthrottled interval take, at its end.

    The content that the bucket lacks when the next interval begins is what came, less what was refilled
    meanwhile.
    """
    if interval.upcoming is None or limit <= 0:
        return interval.length
    size, waited = interval.upcoming
    lacks = limit * burst_seconds - max(size - limit * waited, 0.0)
    if not 0 < lacks <= interval.size:
        # Others of the bucket, or earlier intervals, have used it as well.
        return interval.length
    return min((interval.size - lacks) / limit, interval.length)


def _spread(start: float, length: float, size: float, requests: float, per_step: float) -> Iterator[Step]:
    count = max(1, min(round(requests), math.ceil(size / per_step)))
    for place in range(count):
        yield start + length * place / count, size / count
