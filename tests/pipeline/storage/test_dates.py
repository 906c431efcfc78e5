"""The dates of a window: which of them a run replaces, in whole or in part."""

from datetime import date

import pytest
from pyspark.sql import SparkSession

from pipeline.storage.dates import Dates, near
from pipeline.window import Window, make_window

DAYS = [date(2026, 3, day) for day in range(27, 32)]
"""Summer time begins in Europe on the 29th; dates are of UTC."""


@pytest.mark.parametrize(
    ("start", "end", "replaced", "edges"),
    [
        ("2026-03-28", "2026-03-30", {28, 29}, set()),
        ("2026-03-28T23:00", "2026-03-29T01:00", {28, 29}, {28, 29}),
        ("2026-03-29T00:00+02:00", "2026-03-30T00:00+02:00", {28, 29}, {28, 29}),
        ("2026-03-28T10:00", None, set(), {28}),
        (None, "2026-03-28T10:00", set(), {28}),
        (None, None, set(), set()),
    ],
)
def test_a_window_replaces_its_days_in_whole_or_in_part(
    start: str | None, end: str | None, replaced: set[int], edges: set[int]
) -> None:
    dates = Dates(make_window(start, end))
    assert {day.day for day in DAYS if dates.replaces(day)} == replaced
    assert {day.day for day in dates.edges(set(DAYS))} == edges
    assert Dates(make_window(start, end), whole_days=True).edges(set(DAYS)) == []
    assert dates.is_bounded == (start is not None and end is not None)


def test_conditions_of_a_date(spark: SparkSession) -> None:
    table = spark.createDataFrame([(day,) for day in DAYS], "date date")

    def chosen(condition: str) -> list[int]:
        return sorted(row.date.day for row in table.where(condition).collect())

    window = make_window("2026-03-28T23:00", "2026-03-30")
    assert chosen(Dates(window).sql(set())) == [28, 29]
    assert chosen(Dates(Window()).sql({DAYS[0], DAYS[3]})) == [27, 30]
    assert chosen(Dates(Window()).sql(set())) == []
    near_it = table.where(near(make_window("2026-03-29", "2026-03-30")))
    assert sorted(row.date.day for row in near_it.collect()) == [28, 29, 30]
