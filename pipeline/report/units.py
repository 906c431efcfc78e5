"""Formats numbers for readers."""

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

_BYTES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_COUNTS: Final = ("", " k", " M", " G", " T", " P")
SIZES: Final = tuple(1024.0**place for place in range(len(_BYTES)))
TIMES: Final = (1.0, 1000.0, 60_000.0, 3_600_000.0)
"""A millisecond, a second, a minute and an hour, in ms: the steps of an axis."""
COUNTS: Final = tuple(1000.0**place for place in range(len(_COUNTS)))


def size(value: float) -> str:
    """Bytes: `1.5 GiB`."""
    return _scaled(value, 1024, _BYTES, " ")


def rate(value: float) -> str:
    """Bytes per second: `1.5 MiB/s`."""
    return f"{size(value)}/s"


def count(value: float) -> str:
    """A count: `1.5 M`."""
    return _scaled(value, 1000, _COUNTS, "")


def duration(milliseconds: float) -> str:
    """A duration: `120 ms`, `12.5 s`, `3 min 20 s`, `5 h 10 min`."""
    seconds = milliseconds / 1000
    if seconds < 1:
        return f"{milliseconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    if seconds < 3600:
        return _pair(seconds, "s", 60, "min")
    return _pair(seconds // 60, "min", 60, "h")


def _pair(value: float, unit: str, per: int, larger: str) -> str:
    whole, rest = divmod(round(value), per)
    return f"{whole:,} {larger} {rest} {unit}" if rest else f"{whole:,} {larger}"


def percent(part: float) -> str:
    """A part of 1: `12 %`."""
    if 0 < part < 0.01:
        return "< 1 %"
    return f"{part * 100:.0f} %"


def change(before: Decimal | int, now: Decimal | int) -> str:
    """The change of a count or an amount: `+12 %`, `-3.5 %`; `new` if there was nothing before."""
    if before == now:
        return "0 %"
    if not before:
        return "new"
    part = float((now - before) * 100 / Decimal(before))
    if abs(part) < 0.1:
        return "+0.1 %" if part > 0 else "-0.1 %"
    if part >= 10_000:
        return f"{float(now / Decimal(before)):,.0f} times"
    return f"{part:+,.1f} %" if abs(part) < 10 else f"{part:+,.0f} %"


def quantity(value: Decimal) -> str:
    """A quantity on an invoice, to a millionth; a whole number without decimals."""
    return f"{value:,.0f}" if value == value.to_integral_value() else f"{value:,.6f}"


def price(value: Decimal) -> str:
    """A price, with the decimals that it has, at least two."""
    exact = value.normalize()
    exponent = exact.as_tuple().exponent
    return f"{exact:,.{max(2, -exponent if isinstance(exponent, int) else 0)}f}"


def ticks(highest: float, steps: Sequence[float], wanted: int = 4) -> list[float]:
    """Return about `wanted` round values from 0 to the first that is not below the highest.

    `steps`: the units, ascending; a value is a round number of one of them.
    """
    if highest <= 0:
        return [0.0, steps[0]]
    unit = max((step for step in steps if step <= highest), default=steps[0])
    step = highest / unit / wanted
    power = 10.0 ** math.floor(math.log10(step))
    nice = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= step * 0.999) * unit
    return [nice * place for place in range(math.ceil(highest / nice - 1e-9) + 1)]


def _scaled(value: float, base: int, names: tuple[str, ...], space: str) -> str:
    place = 0
    while abs(value) >= base * 0.9995 and place < len(names) - 1:
        value /= base
        place += 1
    digits = f"{value:.0f}" if place == 0 or abs(value) >= 99.95 else f"{value:.3g}"
    return f"{digits}{space}{names[place]}"


def instant(value: datetime) -> str:
    """Write a time to the minute, or to the second or less where it has them."""
    exact = "auto" if value.second or value.microsecond else "minutes"
    return value.isoformat(sep=" ", timespec=exact)
