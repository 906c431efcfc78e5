"""History: the use of the busiest buckets over the last half hour, for the console.

It is bounded: SERIES buckets, POINTS samples each. It drops buckets that have been idle for the whole time,
and if there are too many, those that have been idle for the longest time.
"""

from array import array
from collections.abc import Callable
from typing import Any, Final

from proxy.telemetry.quota_rows import Row

INTERVAL_SECONDS: Final = 10.0
"""Between two samples."""
POINTS: Final = 180
"""Samples of a bucket: half an hour."""
SERIES: Final = 500
"""Buckets, to bound the memory: a sample of a bucket takes four bytes."""
_UNKNOWN: Final = -1.0
"""A sample in which the bucket was not there: an array of floats has no None."""
Key = tuple[object, ...]


class _Series:
    """A ring of the used parts of the limit."""

    __slots__ = ("busy_at", "row", "used")

    def __init__(self, row: Row) -> None:
        self.row = row
        self.used: Final = array("f", [_UNKNOWN]) * POINTS
        self.busy_at = 0
        """The last sample in which the bucket was in use."""


class History:
    """The samples; times are counted in samples."""

    def __init__(self) -> None:
        self._series: Final[dict[Key, _Series]] = {}
        self._now = 0

    def begin(self) -> Callable[[Row], None]:
        """Begin the next sample; return the function that takes its rows."""
        self._now += 1
        place = self._now % POINTS
        for series in self._series.values():
            series.used[place] = _UNKNOWN
        return self._take

    def _take(self, row: Row) -> None:
        key = row_key(row)
        busy = row["rate"] > 0.0 or row["throttled"]
        series = self._series.get(key)
        if series is None:
            if not busy:
                return
            series = self._series[key] = _Series(row)
        if busy:
            series.busy_at = self._now
        limit = row["limit"]
        series.used[self._now % POINTS] = max(row["rate"], 0.0) / limit if limit > 0.0 else 1.0

    def end(self) -> None:
        """End the sample: forget what is idle, and what is too much."""
        for key in [key for key, each in self._series.items() if each.busy_at <= self._now - POINTS]:
            del self._series[key]
        excess = len(self._series) - SERIES
        if excess > 0:
            place = self._now % POINTS
            order = sorted(
                self._series, key=lambda key: (self._series[key].busy_at, self._series[key].used[place])
            )
            for key in order[:excess]:
                del self._series[key]

    def shown(self) -> dict[str, Any]:
        """The rates as parts of the limits, oldest first; null where the bucket was not there."""
        first = max(self._now - POINTS + 1, 1)
        places = [number % POINTS for number in range(first, self._now + 1)]
        return {
            "interval_seconds": INTERVAL_SECONDS,
            "series": [
                {
                    "kind": series.row["kind"],
                    "broker": series.row["broker"],
                    "entity": series.row["entity"],
                    "used": [_known(series.used[place]) for place in places],
                }
                for series in self._series.values()
            ],
        }


def row_key(row: Row) -> Key:
    """Return what distinguishes a bucket from the others of /api/quotas."""
    return (row["kind"], row["broker"], *sorted(map(str, row["entity"].items())))


def _known(value: float) -> float | None:
    return None if value == _UNKNOWN else round(value, 3)
