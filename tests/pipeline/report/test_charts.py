"""Charts: where the rectangles stand."""

from datetime import datetime, timedelta
from typing import Final

import pytest

from pipeline.report import units
from pipeline.report.charts import heat_map, stacked_columns

NOON: Final = datetime(2026, 1, 1, 12)


def test_columns_stand_on_each_other() -> None:
    hours = [NOON, NOON + timedelta(hours=1)]
    series = {"a": {hours[0]: 30.0}, "b": {hours[0]: 10.0, hours[1]: 20.0}}
    chart = stacked_columns(
        series, {"a": "red", "b": "blue"}, str, units.SIZES, (hours[0], hours[1]), height=200.0
    )
    first, second, third = chart.boxes
    assert first.y == pytest.approx(second.y + second.height)
    assert first.height == pytest.approx(3 * second.height)
    assert third.y + third.height == pytest.approx(first.y + first.height)
    assert third.x > first.x
    assert second.title == "2026-01-01 12:00  b: 10.0"


def test_a_heat_map_has_all_hours_of_its_days() -> None:
    chart = heat_map({NOON: 5.0, NOON + timedelta(days=2): 10.0}, str)
    assert len(chart.boxes) == 3 * 24
    assert [label.text for label in chart.y_labels] == ["Thu Jan 1", "Fri Jan 2", "Sat Jan 3"]
    assert chart.boxes[13].title == "2026-01-01 13:00  no events"


def test_an_hour_without_events_has_a_slot_and_no_box() -> None:
    last = NOON + timedelta(hours=2)
    series = {"a": {NOON: 1.0, last: 1.0}}
    chart = stacked_columns(series, {"a": "red"}, str, units.SIZES, (NOON, last))
    first, second = chart.boxes
    assert [label.text for label in chart.x_labels] == ["12:00", "13:00", "14:00"]
    assert second.x - first.x == pytest.approx(2 * (chart.right - chart.left) / 3)


def test_charts_without_events_are_empty() -> None:
    chart = stacked_columns({}, {}, str, units.SIZES, None)
    assert (chart.boxes, chart.x_labels) == ([], [])
    assert heat_map({}, str).boxes == []


def test_the_labels_of_a_long_time_stand_apart() -> None:
    for days, starts in ((14, "Jan"), (60, ("Jan", "Feb", "Mar")), (365, ("2026-", "2027-"))):
        span = (NOON, NOON + timedelta(days=days))
        labels = stacked_columns({}, {}, str, units.SIZES, span).x_labels
        assert 2 <= len(labels) <= 12
        assert all(label.text.startswith(starts) for label in labels), "days, not hours"


def test_a_long_time_has_columns_of_days() -> None:
    series = {"a": {NOON: 1.0, NOON + timedelta(hours=3): 2.0, NOON + timedelta(days=300): 5.0}}
    span = (NOON, NOON + timedelta(days=300))
    chart = stacked_columns(series, {"a": "red"}, str, units.SIZES, span)
    assert chart.unit == "day"
    assert [box.title for box in chart.boxes] == ["2026-01-01  a: 3.0", "2026-10-28  a: 5.0"]


@pytest.mark.parametrize("days", [1, 30, 365, 4000])
def test_the_size_does_not_grow_with_the_time(days: int) -> None:
    """One event of 2015 in a report of a day, for example."""
    values = {NOON + timedelta(days=day): 1.0 for day in (0, days)}
    columns = stacked_columns({"a": values}, {"a": "red"}, str, units.SIZES, (NOON, max(values)))
    assert sum(box.height > 0 for box in columns.boxes) == 2
    heat = heat_map(values, str)
    assert len(heat.boxes) <= 62 * 24
    assert len([box for box in heat.boxes if not box.title.endswith("no events")]) == 2
    assert (columns.unit, heat.unit) == {
        1: ("hour", "day"),
        30: ("day", "day"),
        365: ("day", "7 days"),
        4000: ("30 days", "365 days"),
    }[days]


def test_an_outlier_ends_above_the_axis() -> None:
    """In the proportions of its series; its tooltip and its mark have its value."""
    days = [NOON + timedelta(days=day) for day in range(30)]
    series = {"a": dict.fromkeys(days, 10.0), "b": {days[7]: 1000.0, days[8]: 5.0}}
    span = (days[0], days[-1] + timedelta(hours=500))
    chart = stacked_columns(series, {"a": "s0", "b": "s1"}, str, units.SIZES, span)
    heights = [box.height for box in chart.boxes if box.title.endswith("a: 10.0")]
    assert len(heights) == 30
    assert sorted(heights)[-2] > 100
    (top,) = chart.breaks
    assert "1010.0" in top.text
    (cut,) = [box for box in chart.boxes if "b: 1000.0" in box.title]
    assert cut.y == pytest.approx(top.y)
    assert cut.height == pytest.approx(100 * min(heights))
    assert max(box.height + box.y for box in chart.boxes) == pytest.approx(chart.lines[0])
