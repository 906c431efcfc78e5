"""When, in an interval of which only the sums are known, a client sent what it sent.

Without throttling: evenly. With it: in cycles. A burst passes, as much as a full bucket has and what refills
meanwhile; then come the requests that waited, at the rate of the limit that held them, which is their bytes
by the time they waited. The time that all bytes take at the limit, without the time waited, was free: so many
times a full bucket's is how many bursts there were, and what is over says how long each took.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_EAGER: Final = 0.9
"""A client that waits has its next request ready. Were it sent exactly at the limit, a bucket that is not
quite empty would never be.
"""
Step = tuple[float, float]
"""Seconds, and bytes sent at that time."""
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


def lay_out(interval: Interval, tried: float, burst_seconds: float, per_step: float) -> Iterator[Step]:
    """The interval's steps, ascending, each of `per_step` bytes at most or else of a single request.

    `tried`: bytes/s of the limit that is tried, which may be the one that held the client.
    `burst_seconds`: of the limit, what a full bucket lets pass at once.
    """
    throttled = min(interval.throttled, interval.requests)
    if throttled <= 0 or interval.throttle_seconds <= 0 or interval.size <= 0:
        yield from _spread(interval.start, interval.length, interval.size, interval.requests, per_step)
        return
    waited = interval.size * throttled / interval.requests
    passed = interval.size - waited
    limit = waited / interval.throttle_seconds
    if _LEAST_OF_TRIED <= limit / tried <= _MOST_OF_TRIED:
        limit = tried
    free_seconds = max(interval.size / limit - interval.throttle_seconds, 0.0)
    cycles = max(1, math.floor(free_seconds / burst_seconds))
    passing = max(0.0, free_seconds / cycles - burst_seconds)
    waits = _EAGER * min(interval.throttle_seconds, interval.length) / cycles
    # What does not fit was not so regular; nothing may spill into the next cycle.
    passing = min(passing, max(interval.length / cycles - waits, 0.0))
    for cycle in range(cycles):
        begin = interval.start + interval.length * cycle / cycles
        if passed > 0:
            unthrottled = (interval.requests - throttled) / cycles
            yield from _spread(begin, passing, passed / cycles, unthrottled, per_step)
        yield from _spread(begin + passing, waits, waited / cycles, throttled / cycles, per_step)


def _spread(start: float, length: float, size: float, requests: float, per_step: float) -> Iterator[Step]:
    count = max(1, min(round(requests), math.ceil(size / per_step)))
    for place in range(count):
        yield start + length * place / count, size / count
