"""Finds where in its interval a connection begins to send, from the intervals beside it.

While throttling continues, a connection sends its next request as soon as its wait is over. The waits of an
interval therefore end in a later one, and the first request of that interval is as late as these waits end.
If each interval began with its own requests, the bucket would fill after each wait, and requests would pass
that have waited.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pipeline.transforms.replay.layout import Interval, always_waits

Intervals = Sequence[tuple[Interval, int]]
"""The sums of one connection in each interval, in order, and the number of connections."""
_SAME: Final = 1e-6
"""Seconds by which times may differ that are meant to be equal."""


def in_sequence(intervals: Intervals, limit: float, burst_seconds: float) -> list[tuple[Interval, int]]:
    """Return the intervals of a tenant with `idle`, `continues_burst` and `sending`.

    `limit`: the tenant's limit in bytes/s, 0.0 if none is known. `burst_seconds`: the content of a full
    bucket, in seconds at the limit.
    """
    found = [*intervals]
    if limit <= 0:
        return found
    for place in range(len(found) - 2, -1, -1):
        (interval, count), (following, following_count) = found[place], found[place + 1]
        if _burst_goes_on(interval, following):
            free_seconds = following.size * following_count / limit - following.throttle_seconds
            if free_seconds < burst_seconds:
                following = replace(following, continues_burst=True)
                found[place + 1] = following, following_count
                sending = _burst_seconds(
                    interval.size * count / limit, free_seconds, following, burst_seconds
                )
                found[place] = replace(interval, sending=min(sending, interval.length)), count
        elif _throttling_goes_on(interval, following):
            begins = place == 0 or not _throttling_goes_on(found[place - 1][0], interval)
            if begins or always_waits(interval):
                seconds = interval.throttle_seconds
                if not begins:
                    # With what was refilled before each request, because the client was late.
                    seconds = max(seconds, interval.size * count / limit)
                late = following.idle if count == following_count and always_waits(following) else 0.0
                idle = following.start - interval.start + late - seconds
                found[place] = replace(interval, idle=max(min(idle, interval.length), 0.0)), count
    return found


def _throttling_goes_on(interval: Interval, following: Interval) -> bool:
    """Whether the last wait of the interval may end in the following one. A wait is taken to be at most twice
    as long as their mean.
    """
    if interval.throttle_seconds <= 0 or following.throttle_seconds <= 0:
        return False
    longest = interval.throttle_seconds * min(2 / max(interval.throttled, 1.0), 1.0)
    return following.start <= interval.start + interval.length + longest + _SAME


def _burst_goes_on(interval: Interval, following: Interval) -> bool:
    """Whether throttling begins in the following interval, at once after one in which nothing waits."""
    adjacent = following.start <= interval.start + interval.length + _SAME
    return adjacent and interval.throttle_seconds <= 0 < following.throttle_seconds


def _burst_seconds(sent: float, free_seconds: float, following: Interval, burst_seconds: float) -> float:
    """Return the length of the period, at the end of an unthrottled interval, in which its bytes are sent.

    `sent`: its bytes, and `free_seconds` those that pass at the beginning of the following interval, in
    seconds at the limit. What a full bucket has beyond the latter, less what is refilled meanwhile, was used
    before. This is what was sent, less what was refilled.
    """
    lacks = min(burst_seconds - free_seconds + following.idle, burst_seconds)
    # Otherwise, other clients of the bucket, or earlier intervals, have used a part of the content.
    return sent - lacks if lacks <= sent else math.inf
