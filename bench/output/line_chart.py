"""LineChart: lines over time, as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

WIDTH: Final = 900
HEIGHT: Final = 340
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 48, 64
COLORS: Final = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#8c564b")
INK: Final = "#444"
STYLE: Final = (
    "<style>@media (prefers-color-scheme: dark) {.paper {fill: #1b1e23} text {fill: #ddd} "
    f'[stroke="{INK}"] {{stroke: #ddd}} [stroke="#ddd"] {{stroke: #444}}}}</style>'
)
"""Readers with a dark page get light text and lines on a dark ground."""


@dataclass(frozen=True)
class Line:
    """One value per second from second 0 on."""

    name: str
    values: Sequence[float]
    color: str
    width: float = 1.5
    dashes: str = ""


@dataclass
class LineChart:
    """Lines, and marks at moments. The vertical axis begins at 0."""

    title: str
    unit: str
    highest: float
    lines: list[Line] = field(default_factory=list)
    marks: list[tuple[float, str]] = field(default_factory=list)
    """The second of each mark, and what happens then."""

    def svg(self) -> str:
        """Return the picture."""
        seconds = max(len(line.values) for line in self.lines)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="sans-serif" font-size="12" fill="{INK}">',
            STYLE,
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white" class="paper"/>',
            _text(LEFT, 20, self.title, 'font-size="15"'),
            *self._grid(seconds),
            *[self._line(line, seconds) for line in self.lines],
            *self._legend(),
        ]
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _x(self, second: float, seconds: float) -> float:
        return LEFT + second / max(seconds - 1, 1) * (WIDTH - LEFT - RIGHT)

    def _y(self, value: float) -> float:
        return HEIGHT - BOTTOM - min(value / self.highest, 1.0) * (HEIGHT - TOP - BOTTOM)

    def _grid(self, seconds: int) -> list[str]:
        parts = []
        steps = 4
        for step in range(steps + 1):
            value = self.highest * step / steps
            y = self._y(value)
            parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
            unit = f" {self.unit}" if step == steps else ""
            parts.append(_text(LEFT - 6, y + 4, f"{value:g}{unit}", 'text-anchor="end"'))
        for second in range(0, seconds, 10):
            x = self._x(second, seconds)
            parts.append(_text(x, HEIGHT - BOTTOM + 16, f"{second} s", 'text-anchor="middle"'))
        for at, what in self.marks:
            x = self._x(at, seconds)
            parts.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#999" stroke-dasharray="3 3"/>')
            parts.append(_text(x + 3, TOP - 6, what))
        return parts

    def _line(self, line: Line, seconds: int) -> str:
        points = " ".join(
            f"{self._x(second, seconds):.1f},{self._y(value):.1f}" for second, value in enumerate(line.values)
        )
        return (
            f'<polyline points="{points}" fill="none" stroke="{line.color}" stroke-width="{line.width:g}" '
            f'stroke-dasharray="{line.dashes}"/>'
        )

    def _legend(self) -> list[str]:
        parts = []
        x, y = LEFT, HEIGHT - 22
        for line in self.lines:
            parts.append(
                f'<path d="M{x} {y - 4}h24" stroke="{line.color}" stroke-width="{line.width:g}" '
                f'stroke-dasharray="{line.dashes}"/>'
            )
            parts.append(_text(x + 30, y, line.name))
            x += 50 + 7 * len(line.name)
        return parts


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'
