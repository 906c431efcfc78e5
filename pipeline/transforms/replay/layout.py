"""Reconstructs when a client sent its bytes. Events have only the sums of an interval.

If nothing was throttled, the bytes are spread evenly over the interval. Otherwise the interval consists of
cycles with two phases:

1. Burst: requests pass without a wait until the token bucket is empty. They use the content of a full bucket,
   and what is refilled during the burst.
2. Waits: requests wait, so they pass at the rate of the limit. The limit is the bytes of the throttled
   requests, divided by their throttle time.

`free_seconds` is the time that the bytes of all bursts take at the limit. A full bucket covers
`burst_seconds` of it in each cycle, so there are `free_seconds / burst_seconds` cycles, rounded down. The
remainder, divided by the number of cycles, is the length of a burst.

`sequence.py` finds where in its interval a cycle begins.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

AT_ONCE: Final = 0.0
"""`eager` if the replayed limit is the limit of the events: all throttled requests of a cycle are due at
once, and the limit itself spaces them.
"""
AS_THEY_CAME: Final = 0.9
"""`eager` for another limit: throttled requests are due slightly faster than they came. At exactly their
rate, a nearly empty bucket would never become empty.
"""
Step = tuple[float, float]
"""A time in seconds, and the bytes that are sent at this time."""
MOST_CONNECTIONS: Final = 20_000
"""The proxy's default for `limits.max_connections`. An event with impossible sums would otherwise give more
connections than fit into memory.
"""
_MOST_STEPS: Final = 10_000
"""In an interval. A client that sends ten thousand times the limit needs no more to be replayed."""
_NEARLY_ALL: Final = 0.9
"""If at least this part of the requests of an interval wait, it contains no burst."""


@dataclass(frozen=True, slots=True)
class Interval:
    """What a tenant sent in an interval at one place. The numbers are those of each of its connections:
    seconds, bytes, requests, throttled requests, and seconds waited.
    """

    start: float
    length: float
    size: float
    requests: float
    throttled: float
    throttle_seconds: float
    connections: int = 1
    """How many connections send in the interval."""
    idle: float = 0.0
    """The seconds from the start of the interval until throttling begins, or until the last wait of the
    previous interval is over.
    """
    continues_burst: bool = False
    """Whether the burst began in the previous interval; it then ends with `idle`."""
    sending: float | None = None
    """The length of the period, at the end of an unthrottled interval, in which its bytes are sent. None: the
    whole interval.
    """
    places: Sequence[int] = (0,)
    """The numbers of the tenant's connections that send in the interval."""
    waiting: float = 1.0
    """The number of connections that wait at the same time, at least those that send."""


def connections_of(throttled: float, throttle_ms: float, interval_ms: float) -> int:
    """Estimate how many connections sent, from the sums of an interval.

    A connection that always waits has the throttle time of the interval and, on average, of half a wait more,
    because its last wait ends after the interval. With longer waits than the interval, it sends one request.
    """
    if throttled <= 0 or throttle_ms <= 0:
        return 1
    each = throttle_ms / throttled
    if each >= interval_ms:
        return round(min(throttled, MOST_CONNECTIONS))
    return min(max(1, round(throttle_ms / (interval_ms + each / 2))), MOST_CONNECTIONS)


def always_waits(interval: Interval) -> bool:
    """Whether nearly every request waits, so that no burst is in the interval."""
    return interval.throttled >= interval.requests * _NEARLY_ALL


def lay_out(
    interval: Interval, limit: float, eager: float, burst_seconds: float, per_step: float
) -> Iterator[Step]:
    """Yield the steps of the interval in order, each of at most `per_step` bytes or of a single request.

    Steps are larger than that if there would be more than about _MOST_STEPS.

    `limit`: the connection's limit in bytes/s. `burst_seconds`: the content of a full bucket, in seconds at
    the limit. `eager`: the part of the waiting time over which the throttled requests are spread.
    """
    per_step = max(per_step, interval.size / _MOST_STEPS)
    throttled = min(interval.throttled, interval.requests)
    if throttled <= 0 or interval.throttle_seconds <= 0 or interval.size <= 0 or limit <= 0:
        seconds = interval.length if interval.sending is None else interval.sending
        begin = interval.start + interval.length - seconds
        yield from _spread(begin, seconds, interval.size, interval.requests, per_step)
        return
    waited = min(interval.size, limit * interval.throttle_seconds)
    passed = interval.size - waited
    free_seconds = passed / limit
    cycles = min(max(1, math.floor(free_seconds / burst_seconds)), _MOST_STEPS)
    passing = max(0.0, free_seconds / cycles - burst_seconds)
    if interval.continues_burst:
        passing = interval.idle
    waits = min(interval.throttle_seconds, interval.length) / cycles
    # The traffic was less regular than assumed; a cycle must not spill into the next.
    passing = min(passing, max(interval.length / cycles - waits, 0.0))
    rest = max(interval.idle / cycles - passing, 0.0)
    for cycle in range(cycles):
        begin = interval.start + interval.length * cycle / cycles + rest
        if passed > 0:
            unthrottled = max(interval.requests - throttled, 1.0) / cycles
            # Over the whole time: a full bucket does not refill before the first request.
            count = max(2, min(round(unthrottled), math.ceil(passed / cycles / per_step)))
            for place in range(count):
                yield begin + passing * place / (count - 1), passed / cycles / count
        yield from _spread(begin + passing, eager * waits, waited / cycles, throttled / cycles, per_step)


def _spread(start: float, length: float, size: float, requests: float, per_step: float) -> Iterator[Step]:
    """Yield `size` bytes in steps of equal size, evenly over `length` seconds."""
    count = max(1, min(round(requests), math.ceil(size / per_step)))
    for place in range(count):
        yield start + length * place / count, size / count
