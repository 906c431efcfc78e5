"""Computes the rectangles and labels of charts; the page's template draws them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from pipeline.report.units import ticks

COLORS: Final = ("#3b6fb6", "#e08a2e", "#3f9b6c", "#b8475a", "#7a5fa8", "#2aa0a8", "#d07fb3", "#8a5a44")
"""Distinguishable with common color vision deficiencies, and in print."""
OTHERS_COLOR: Final = "#b4bac4"
WIDTH: Final = 960.0
_LEFT: Final = 78.0
_RIGHT: Final = 8.0
_TOP: Final = 10.0
_BOTTOM: Final = 26.0
_LABELS_AT_MOST: Final = 12
_COLUMN_AT_MOST: Final = 56.0
_CELL_HEIGHT: Final = 22.0
_STEPS: Final = (1, 2, 3, 4, 6, 12, 24, 48, 72, 168, 336, 720, 2160, 8760)
HOUR: Final = timedelta(hours=1)
Span = tuple[datetime, datetime] | None
"""The first and the last hour; None without events."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, its color, and its tooltip."""

    x: float
    y: float
    width: float
    height: float
    color: str
    title: str


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
    """The y of horizontal lines."""
    left: float = _LEFT
    right: float = WIDTH - _RIGHT


def stacked_columns(
    series: Mapping[str, Mapping[datetime, float]],
    colors: Mapping[str, str],
    spell: Callable[[float], str],
    steps: Sequence[float],
    span: Span,
    height: float = 250.0,
) -> Chart:
    """Draw a column for each hour of the span, with a box for each series, the first at the bottom."""
    hours = _hours(span)
    totals = [sum(values.get(hour, 0.0) for values in series.values()) for hour in hours]
    marks = ticks(max(totals, default=0.0), steps)
    bottom, slot = height - _BOTTOM, (WIDTH - _LEFT - _RIGHT) / max(len(hours), 1)
    scale = (bottom - _TOP) / marks[-1]
    wide = min(slot - min(slot * 0.15, 3.0), _COLUMN_AT_MOST)
    boxes = []
    for place, hour in enumerate(hours):
        y = bottom
        for name, values in series.items():
            value = values.get(hour, 0.0)
            if value > 0:
                y -= value * scale
                title = f"{hour:%Y-%m-%d %H:%M}  {name}: {spell(value)}"
                x = _LEFT + slot * place + (slot - wide) / 2
                boxes.append(Box(x, y, wide, value * scale, colors[name], title))
    lines = [bottom - mark * scale for mark in marks]
    return Chart(
        height,
        boxes,
        _time_labels(hours, slot, height - 8),
        [Label(_LEFT - 8, y + 4, spell(mark)) for y, mark in zip(lines, marks, strict=True)],
        lines,
    )


def heat_map(values: Mapping[datetime, float], spell: Callable[[float], str]) -> Chart:
    """Draw a row for each day and a column for each hour; a darker cell means a larger value."""
    days = _days([hour.date() for hour in values])
    highest = max(values.values(), default=0.0)
    slot = (WIDTH - _LEFT - _RIGHT) / 24
    boxes = []
    for row, day in enumerate(days):
        for column in range(24):
            hour = datetime(day.year, day.month, day.day, column)
            value = values.get(hour)
            title = f"{hour:%Y-%m-%d %H:%M}  {'no events' if value is None else spell(value)}"
            color = "#f1f3f6" if value is None else _heat(value / highest if highest else 0.0)
            boxes.append(
                Box(
                    _LEFT + slot * column + 1,
                    _TOP + _CELL_HEIGHT * row + 1,
                    slot - 2,
                    _CELL_HEIGHT - 2,
                    color,
                    title,
                )
            )
    height = _TOP + _CELL_HEIGHT * len(days) + _BOTTOM
    return Chart(
        height,
        boxes,
        [Label(_LEFT + slot * (hour + 0.5), height - 8, f"{hour:02}") for hour in range(24)],
        [
            Label(_LEFT - 8, _TOP + _CELL_HEIGHT * (row + 0.5) + 4, f"{day:%a %b} {day.day}")
            for row, day in enumerate(days)
        ],
        [],
    )


def _hours(span: Span) -> list[datetime]:
    if span is None:
        return []
    first, last = span
    return [first + HOUR * place for place in range((last - first) // HOUR + 1)]


def _days(found: Sequence[date]) -> list[date]:
    if not found:
        return []
    first, last = min(found), max(found)
    return [first + timedelta(days=place) for place in range((last - first).days + 1)]


def _time_labels(hours: Sequence[datetime], slot: float, y: float) -> list[Label]:
    step = next((step for step in _STEPS if len(hours) / step <= _LABELS_AT_MOST), _STEPS[-1])
    labels = []
    for place, hour in enumerate(hours):
        if (hour - datetime(1970, 1, 1)) // HOUR % step == 0:
            midnight = hour.hour == 0
            text = f"{hour:%b} {hour.day}" if midnight else f"{hour:%H:%M}"
            labels.append(Label(_LEFT + slot * (place + (0.5 if len(hours) < 30 else 0.0)), y, text))
    return labels


def _heat(part: float) -> str:
    """A color from nearly white through blue to dark."""
    stops = ((234, 241, 250), (124, 171, 220), (45, 104, 178), (16, 46, 98))
    place = part**0.7 * (len(stops) - 1)
    low = min(int(place), len(stops) - 2)
    share = place - low
    mixed = [round(a + (b - a) * share) for a, b in zip(stops[low], stops[low + 1], strict=True)]
    return "#" + "".join(f"{channel:02x}" for channel in mixed)
