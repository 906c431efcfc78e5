"""BarChart: what each peer costs for each kind of work, as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

WIDTH: Final = 900
LEFT, RIGHT, TOP, BOTTOM = 250, 60, 60, 20
BAR: Final = 14
GAP: Final = 18
"""Pixels: the height of a bar, and between two kinds of work."""
COLORS: Final = ("#7f7f7f", "#9467bd", "#1f77b4", "#ff7f0e", "#2ca02c")
INK: Final = "#444"


@dataclass(frozen=True)
class Bar:
    """The median of some rounds, and their spread."""

    name: str
    least: float
    median: float
    most: float


@dataclass
class BarChart:
    """Groups of bars, one below the other. Each name has the same color in all groups."""

    title: str
    unit: str
    groups: list[tuple[str, Sequence[Bar]]] = field(default_factory=list)

    def svg(self) -> str:
        """Return the picture."""
        names = list(dict.fromkeys(bar.name for _, bars in self.groups for bar in bars))
        colors = {name: COLORS[place % len(COLORS)] for place, name in enumerate(names)}
        highest = max(bar.most for _, bars in self.groups for bar in bars)
        bars = sum(len(group) for _, group in self.groups)
        height = TOP + bars * BAR + len(self.groups) * GAP + BOTTOM
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'font-family="sans-serif" font-size="12" fill="{INK}">',
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            _text(20, 20, f"{self.title} ({self.unit})", 'font-size="15"'),
            *_legend(colors),
        ]
        y = TOP
        for title, group in self.groups:
            parts.append(_text(LEFT - 8, y + len(group) * BAR / 2 + 4, title, 'text-anchor="end"'))
            for bar in group:
                parts += _bar(bar, y, colors[bar.name], (WIDTH - LEFT - RIGHT) / highest)
                y += BAR
            y += GAP
        return "\n".join([*parts, "</svg>"]) + "\n"


def _bar(bar: Bar, y: float, color: str, scale: float) -> list[str]:
    middle = y + BAR / 2
    end = LEFT + bar.most * scale
    return [
        f'<rect x="{LEFT}" y="{y + 1}" width="{bar.median * scale:.1f}" height="{BAR - 2}" fill="{color}"/>',
        f'<path d="M{LEFT + bar.least * scale:.1f} {middle}H{end:.1f}" stroke="{INK}"/>',
        _text(end + 5, middle + 4, f"{bar.median:.2f}"),
    ]


def _legend(colors: dict[str, str]) -> list[str]:
    parts = []
    x = LEFT
    for name, color in colors.items():
        parts.append(f'<rect x="{x}" y="32" width="12" height="12" fill="{color}"/>')
        parts.append(_text(x + 17, 42, name))
        x += 40 + 7 * len(name)
    return parts


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'
