"""Finds where in its interval a connection begins to send, from the intervals beside it.

While throttling continues, a connection sends its next request as soon as its wait is over. The waits of an
interval therefore end in a later one, and the first request of that interval is as late as these waits end.
If each interval began with its own requests, the bucket would fill after each wait, and requests would pass
that have waited.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pipeline.transforms.replay.layout import Interval, always_waits

_SAME: Final = 1e-6
"""Seconds by which times may differ that are meant to be equal."""


def in_sequence(intervals: Sequence[Interval], limit: float, burst_seconds: float) -> list[Interval]:
    """Return the intervals of a tenant, in order, with `idle`, `continues_burst` and `sending`.

    `limit`: the tenant's limit in bytes/s, 0.0 if none is known. `burst_seconds`: the content of a full
    bucket, in seconds at the limit.
    """
    found = [*intervals]
    if limit <= 0:
        return found
    # From the last to the first: where an interval begins depends on where the following one does.
    for place in reversed(range(len(found) - 1)):
        interval, following = found[place : place + 2]
        if _burst_goes_on(interval, following):
            found[place : place + 2] = _split_burst(interval, following, limit, burst_seconds)
        elif _throttling_goes_on(interval, following):
            begins = place == 0 or not _throttling_goes_on(found[place - 1], interval)
            if begins or always_waits(interval):
                found[place] = _until_following(interval, following, limit, begins=begins)
    return found


def _split_burst(
    interval: Interval, following: Interval, limit: float, burst_seconds: float
) -> tuple[Interval, Interval]:
    """Set `sending` and `continues_burst` of an interval without waits, and of the following one, if a burst
    began in the first one and ended in the second.
    """
    # What passes at the beginning of the following interval, in seconds at the limit.
    free_seconds = following.size * following.connections / limit - following.throttle_seconds
    if free_seconds >= burst_seconds:
        return interval, following
    sent = interval.size * interval.connections / limit
    # What a full bucket has beyond that, less what is refilled meanwhile, was used before.
    lacks = min(burst_seconds - free_seconds + following.idle, burst_seconds)
    # If less was sent, other clients of the bucket, or earlier intervals, have used a part of the content.
    sending = min(sent - lacks, interval.length) if lacks <= sent else interval.length
    return replace(interval, sending=sending), replace(following, continues_burst=True)


def _until_following(interval: Interval, following: Interval, limit: float, *, begins: bool) -> Interval:
    """Set `idle` so that the waits of the interval end where throttling begins in the following one.

    `begins`: whether throttling begins in the interval, and did not begin in an earlier one.
    """
    seconds = interval.throttle_seconds
    if not begins:
        # With what was refilled before each request, because the client was late.
        seconds = max(seconds, interval.size * interval.connections / limit)
    end = following.start - interval.start
    if interval.connections == following.connections and always_waits(following):
        end += following.idle
    return replace(interval, idle=max(min(end - seconds, interval.length), 0.0))


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
