"""Times without acknowledgements."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise


def longest_gap(times: Sequence[float], begin: float, end: float) -> float:
    """Return the longest gap between acknowledgements that overlaps `begin` to `end`.

    `times` ascend. `begin` and `end` bound the gap before the first and that after the last.
    """
    first = max(bisect_right(times, begin) - 1, 0)
    inside = [begin, *(at for at in times[first:] if begin < at < end), end]
    return max(later - earlier for earlier, later in pairwise(inside))


def percentiles(values: Sequence[float], digits: int = 3) -> dict[str, float]:
    """The median, the 90th and 99th percentile and the maximum; empty without values."""
    if not values:
        return {}
    ordered = sorted(values)
    last = len(ordered) - 1
    places = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {name: round(ordered[round(last * part)], digits) for name, part in places.items()}
