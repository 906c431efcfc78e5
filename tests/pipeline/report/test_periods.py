"""Periods: columns of a report for any time."""

from datetime import datetime, timedelta

import pytest

from pipeline.report.periods import DAY, HOUR, Periods

NOON = datetime(2026, 1, 1, 12)


@pytest.mark.parametrize(
    ("hours", "most", "name", "count"),
    [(0, 400, "hour", 1), (399, 400, "hour", 400), (400, 400, "day", 18), (24 * 365, 62, "7 days", 53)],
)
def test_the_shortest_that_are_few_enough(hours: int, most: int, name: str, count: int) -> None:
    last = NOON + timedelta(hours=hours)
    periods = Periods.over(NOON, last, most)
    assert (periods.name, periods.count) == (name, count)
    assert (periods.place(NOON), periods.place(last)) == (0, count - 1)
    assert len(periods.begins()) == count


def test_days_begin_at_midnight() -> None:
    periods = Periods.over(NOON, NOON + 2 * DAY, 62, DAY)
    assert periods.begins() == [datetime(2026, 1, day) for day in (1, 2, 3)]
    assert [periods.place(NOON + 12 * HOUR - timedelta(seconds=1)), periods.place(NOON + 12 * HOUR)] == [0, 1]


def test_titles() -> None:
    assert Periods(NOON, HOUR, 1).title(NOON) == "2026-01-01 12:00"
    assert Periods(NOON, DAY, 1).title(datetime(2026, 1, 1)) == "2026-01-01"
    assert Periods(NOON, 7 * DAY, 1).title(datetime(2026, 1, 1)) == "2026-01-01 to 2026-01-07"


def test_a_very_long_time_has_years() -> None:
    assert Periods.over(NOON, NOON + 30 * 365 * DAY, 5).name == "365 days"
