"""Computes the rectangles and labels of charts; the page's template draws them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pipeline.report.axis import axis_top
from pipeline.report.periods import DAY, HOUR, Periods
from pipeline.report.units import ticks

COLORS: Final = ("s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7")
"""Classes of page.css, whose colors differ for people with common color vision deficiencies, and in print."""
OTHERS_COLOR: Final = "so"
HEAT_COLOR: Final = "heat"
EMPTY_COLOR: Final = "empty"
WIDTH: Final = 960.0
_LEFT: Final = 78.0
_RIGHT: Final = 8.0
_TOP: Final = 10.0
_BOTTOM: Final = 26.0
"""The size of a chart, and the space around its columns for the labels of the axes, in CSS pixels."""
_LABELS_AT_MOST: Final = 12
"""Labels of the time axis."""
_COLUMN_AT_MOST: Final = 56.0
"""The width of a column."""
_CELL_HEIGHT: Final = 22.0
_STEPS: Final = (1, 2, 3, 4, 6, 12, 24, 48, 72, 168, 336, 720, 2160, 8760)
"""Periods from one label of the time axis to the next."""
_COLUMNS_AT_MOST: Final = 400
"""A year has a column for each day, and a fortnight one for each hour."""
_ROWS_AT_MOST: Final = 62
"""Two months have a row for each day."""
Span = tuple[datetime, datetime] | None
"""The first and the last hour; None without events."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, its color (a class), and its tooltip."""

    x: float
    y: float
    width: float
    height: float
    color: str
    title: str
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Label:
    """A text at a position; for a label of the left axis, x is its right end."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Coordinates are in a view box of WIDTH x `height`."""

    height: float
    boxes: list[Box]
    x_labels: list[Label]
    y_labels: list[Label]
    lines: list[float]
    """The y of each horizontal line, for the marks of the left axis."""
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    unit: str = "hour"
    """What a column or a row stands for: `hour`, `day`, `7 days` and so on."""
    breaks: Sequence[Label] = ()
    """Columns that are higher than the axis: the middle of their top, and their period and value."""


def stacked_columns(
    series: Mapping[str, Mapping[datetime, float]],
    colors: Mapping[str, str],
    spell: Callable[[float], str],
    steps: Sequence[float],
    span: Span,
    height: float = 250.0,
) -> Chart:
    """Draw a column for each hour of the span, or for each longer period of a long span, with a box for each
    series, the first at the bottom. An outlier is cut off at the top.
    """
    periods = None if span is None else Periods.over(*span, _COLUMNS_AT_MOST)
    begins = [] if periods is None else periods.begins()
    sums = {name: _sums(values, periods) for name, values in series.items()}
    totals = [sum(values.get(place, 0.0) for values in sums.values()) for place in range(len(begins))]
    marks = ticks(axis_top(totals), steps)
    bottom, slot = height - _BOTTOM, (WIDTH - _LEFT - _RIGHT) / max(len(begins), 1)
    scale = (bottom - _TOP) / marks[-1]
    wide = min(slot - min(slot * 0.15, 3.0), _COLUMN_AT_MOST)
    boxes: list[Box] = []
    breaks: list[Label] = []
    for place, begin in enumerate(begins):
        when = "" if periods is None else periods.title(begin)
        column = {name: values[place] for name, values in sums.items() if values.get(place, 0.0) > 0}
        x = _LEFT + slot * place + (slot - wide) / 2
        if totals[place] > marks[-1]:
            breaks.append(Label(x + wide / 2, _TOP, f"{when}: {spell(totals[place])}"))
        # A column that is higher than the axis ends at its top, in the proportions of its series.
        part = (bottom - _TOP) / max(totals[place], marks[-1])
        y = bottom
        for name, value in column.items():
            y -= value * part
            title = f"{when}  {name}: {spell(value)}"
            boxes.append(Box(x, y, wide, value * part, colors[name], title))
    lines = [bottom - mark * scale for mark in marks]
    return Chart(
        height,
        boxes,
        _time_labels(periods, slot, height - 8),
        [Label(_LEFT - 8, y + 4, spell(mark)) for y, mark in zip(lines, marks, strict=True)],
        lines,
        unit="hour" if periods is None else periods.name,
        breaks=breaks,
    )


def _sums(values: Mapping[datetime, float], periods: Periods | None) -> dict[int, float]:
    """The sum of each period, by its place."""
    sums: dict[int, float] = {}
    for hour, value in values.items():
        if periods is not None:
            place = periods.place(hour)
            sums[place] = sums.get(place, 0.0) + value
    return sums


def heat_map(values: Mapping[datetime, float], spell: Callable[[float], str]) -> Chart:
    """Draw a row for each day, or for each longer period of a long time, and a column for each hour of the
    day; a darker cell means a larger value.
    """
    periods = Periods.over(min(values), max(values), _ROWS_AT_MOST, DAY) if values else None
    begins = [] if periods is None else periods.begins()
    cells: dict[tuple[int, int], float] = {}
    for hour, value in values.items():
        if periods is not None:
            cell = periods.place(hour), hour.hour
            cells[cell] = cells.get(cell, 0.0) + value
    highest = max(cells.values(), default=0.0)
    slot = (WIDTH - _LEFT - _RIGHT) / 24
    boxes = []
    for row, begin in enumerate(begins):
        day = "" if periods is None else periods.title(begin)
        for column in range(24):
            found = cells.get((row, column))
            title = f"{day} {column:02}:00  {'no events' if found is None else spell(found)}"
            part = None if found is None else found / highest if highest else 0.0
            boxes.append(_cell(_LEFT + slot * column, _TOP + _CELL_HEIGHT * row, slot, title, part))
    height = _TOP + _CELL_HEIGHT * len(begins) + _BOTTOM
    return Chart(
        height,
        boxes,
        [Label(_LEFT + slot * (hour + 0.5), height - 8, f"{hour:02}") for hour in range(24)],
        [
            Label(_LEFT - 8, _TOP + _CELL_HEIGHT * (row + 0.5) + 4, f"{begin:%a %b} {begin.day}")
            for row, begin in enumerate(begins)
        ],
        [],
        unit="day" if periods is None else periods.name,
    )


def _cell(x: float, y: float, width: float, title: str, part: float | None) -> Box:
    """A cell with this part of the highest value; None: there is no value."""
    color = EMPTY_COLOR if part is None else HEAT_COLOR
    # The square root: a cell is visible beside a much larger one.
    opacity = 1.0 if part is None else 0.08 + 0.92 * part**0.5
    return Box(x + 1, y + 1, width - 2, _CELL_HEIGHT - 2, color, title, opacity=opacity)


def _time_labels(periods: Periods | None, slot: float, y: float) -> list[Label]:
    """Return the labels of the time axis, at most about _LABELS_AT_MOST of them."""
    if periods is None:
        return []
    begins = periods.begins()
    by_hour = periods.length == HOUR
    step = next((step for step in _STEPS if len(begins) / step <= _LABELS_AT_MOST), _STEPS[-1])
    labels = []
    for place, begin in enumerate(begins):
        # Hours are labelled at full steps of the day, longer periods from the first on.
        number = (begin - datetime(1970, 1, 1)) // HOUR if by_hour else place
        if number % step == 0:
            text = _time_label(begin, by_hour=by_hour, years=begins[0].year != begins[-1].year)
            labels.append(Label(_LEFT + slot * (place + (0.5 if len(begins) < 30 else 0.0)), y, text))
    return labels


def _time_label(begin: datetime, *, by_hour: bool, years: bool) -> str:
    if by_hour and begin.hour:
        return f"{begin:%H:%M}"
    return f"{begin:%Y-%m-%d}" if years and not by_hour else f"{begin:%b} {begin.day}"
