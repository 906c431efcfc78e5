"""Finds which of a tenant's connections send in each interval.

A wait may be longer than an interval. The connection then sends nothing in the following intervals; what is
sent in them comes from other connections, which wait at the same time.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from pipeline.transforms.replay.layout import MOST_CONNECTIONS, Interval


def take_turns(intervals: Sequence[Interval]) -> list[Interval]:
    """Return the intervals, in order, with `places` and `waiting`."""
    if not any(map(_is_long, intervals)):
        return [
            replace(each, places=range(each.connections), waiting=float(each.connections))
            for each in intervals
        ]
    found: list[Interval] = []
    # The end of each connection's wait, if it sent at the start of its interval; on average, it is half an
    # interval later.
    ends: list[float] = []
    for interval in intervals:
        count = interval.connections
        places = _free(ends, interval.start + interval.length, count)
        ends += [-math.inf] * (max(places) + 1 - len(ends))
        busy = [min(max((end - interval.start) / interval.length + 0.5, 0.0), 1.0) for end in ends]
        others = sum(busy) - sum(busy[place] for place in places)
        if _is_long(interval):
            for number, place in enumerate(places):
                # The first ones send together, so each of them waits for the one before.
                part = 1.0 if any(busy) else 2 * (number + 1) / (count + 1)
                ends[place] = interval.start + part * interval.throttle_seconds
        found.append(replace(interval, places=places, waiting=count + others))
    return found


def _is_long(interval: Interval) -> bool:
    """Whether a wait takes the whole interval or more."""
    return 0 < interval.throttled * interval.length <= interval.throttle_seconds


def _free(ends: Sequence[float], now: float, count: int) -> Sequence[int]:
    """Return `count` connections: those whose waits have ended, then new ones, then those that wait."""
    free = [place for place, end in enumerate(ends) if end < now][:count]
    new = range(len(ends), min(len(ends) + count - len(free), MOST_CONNECTIONS))
    others = range(count - len(free) - len(new))
    return list(dict.fromkeys([*free, *new, *others]))
