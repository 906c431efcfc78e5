"""The dates of a window, for tables with an `hour` and a `date`, the day (UTC) of the hour."""

from collections.abc import Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipeline.window import Window

DATE: Final = "date"


@dataclass(frozen=True, slots=True)
class Dates:
    """The part of a table that a run replaces. `whole_days`: a row stands for a day, and not for an hour."""

    window: Window
    whole_days: bool = False

    @property
    def is_bounded(self) -> bool:
        """Whether the window has both ends, so that a run replaces all of its dates."""
        return self.window.start_ms is not None and self.window.end_ms is not None

    def replaces(self, day: date) -> bool:
        """Whether the window has both ends, and the day, in whole or in part."""
        if self.window.start_ms is None or self.window.end_ms is None:
            return False
        return _start_ms(day) < self.window.end_ms and self.window.start_ms < _start_ms(_next(day))

    def edges(self, days: Set[date]) -> list[date]:
        """Return those of the days in which the window begins or ends, so that some of their rows stay."""
        if self.whole_days:
            return []
        return sorted(day for day in days if self._has_part_of(day))

    def are(self, replaced: Set[date]) -> Column:
        """Whether a row's date is one of these, or is replaced anyway."""
        start, end = self.window.start_ms, self.window.end_ms
        found = F.col(DATE).isin(sorted(replaced))
        if start is None or end is None:
            return found
        return found | F.col(DATE).between(_day(start), _day(end - 1))

    def sql(self, computed: Set[date]) -> str:
        """Return a condition of SQL: whether a row's date is replaced by a run that computed these dates."""
        start, end = self.window.start_ms, self.window.end_ms
        if start is not None and end is not None:
            # Delta 4.0 does not take BETWEEN here.
            return f"{DATE} >= DATE'{_day(start)}' AND {DATE} <= DATE'{_day(end - 1)}'"
        return " OR ".join(f"{DATE} = DATE'{day}'" for day in sorted(computed)) or "false"

    def has_hour(self) -> Column:
        """Whether the window has the row's hour, or a part of it."""
        hour, found = F.col("hour"), F.lit(True)
        if self.whole_days:
            return found
        if self.window.start_ms is not None:
            found &= hour >= F.date_trunc("hour", F.timestamp_millis(F.lit(self.window.start_ms)))
        if self.window.end_ms is not None:
            found &= hour < F.timestamp_millis(F.lit(self.window.end_ms))
        return found

    def _has_part_of(self, day: date) -> bool:
        ends = (self.window.start_ms, self.window.end_ms)
        return any(end is not None and _start_ms(day) < end < _start_ms(_next(day)) for end in ends)


def near(window: Window) -> Column:
    """Whether a row's date is one of the window's, or next to them.

    The dates of events that another program has written may be of another time zone.
    """
    found = F.lit(True)
    if window.start_ms is not None:
        found &= F.col(DATE) >= _day(window.start_ms) - timedelta(days=1)
    if window.end_ms is not None:
        found &= F.col(DATE) <= _day(window.end_ms - 1) + timedelta(days=1)
    return F.col(DATE).isNull() | found


def is_near(day: date, window: Window) -> bool:
    """Whether near() is true for a date."""
    start, end = window.start_ms, window.end_ms
    return (start is None or day >= _day(start) - timedelta(days=1)) and (
        end is None or day <= _day(end - 1) + timedelta(days=1)
    )


def _start_ms(day: date) -> int:
    return round(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)


def _next(day: date) -> date:
    return day + timedelta(days=1)


def _day(time_ms: int) -> date:
    return datetime.fromtimestamp(time_ms / 1000, UTC).date()
