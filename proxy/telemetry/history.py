"""History: the use of the busiest buckets over the last half hour, for the console.

It is bounded: SERIES buckets, POINTS samples each. It drops buckets that have been idle for the whole time,
and if there are too many, those that have been idle for the longest time.
"""

from array import array
from collections.abc import Callable
from heapq import nlargest
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
        self._new: list[tuple[float, Row]] = []
        """The busiest buckets of the sample that have no series yet, with the used parts of their limits. A
        client may make up names, so they are fewer than 2 x SERIES at any time.
        """
        self._now = 0

    def begin(self) -> Callable[[Row], None]:
        """Begin the next sample; return the function that takes its rows."""
        self._now += 1
        self._new = []
        place = self._now % POINTS
        for series in self._series.values():
            series.used[place] = _UNKNOWN
        return self._take

    def _take(self, row: Row) -> None:
        busy = row["rate"] > 0.0 or row["throttled"]
        limit = row["limit"]
        used = max(row["rate"], 0.0) / limit if limit > 0.0 else 1.0
        series = self._series.get(row_key(row))
        if series is not None:
            series.used[self._now % POINTS] = used
            if busy:
                series.busy_at = self._now
        elif busy:
            self._new.append((used, row))
            if len(self._new) >= 2 * SERIES:
                self._new = _busiest(self._new)

    def end(self) -> None:
        """End the sample: forget what is idle, and what is too much."""
        for key in [key for key, each in self._series.items() if each.busy_at <= self._now - POINTS]:
            del self._series[key]
        for used, row in _busiest(self._new):
            series = self._series[row_key(row)] = _Series(row)
            series.busy_at = self._now
            series.used[self._now % POINTS] = used
        self._new = []
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


def _busiest(rows: list[tuple[float, Row]]) -> list[tuple[float, Row]]:
    return nlargest(SERIES, rows, key=lambda each: each[0])


def row_key(row: Row) -> Key:
    """Return what distinguishes a bucket from the others of /api/quotas."""
    return (row["kind"], row["broker"], *sorted(map(str, row["entity"].items())))


def _known(value: float) -> float | None:
    return None if value == _UNKNOWN else round(value, 3)
