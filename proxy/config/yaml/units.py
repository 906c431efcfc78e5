"""The number to write for a value with a unit: number_hint() for `1MB/s` or `50%`, seconds_hint() for `10m`.

YAML reads `1e6` as text, too: number_hint() is `; write 1000000`.

Quotas are plain numbers, as in Kafka. Values with units are rejected, because 1 MB means 1,000,000 bytes to
some and 1,048,576 to others.
"""

import re
from decimal import Decimal
from typing import Final

_WITH_UNIT: Final = re.compile(
    r"\s*(?P<number>\d{1,18}(?:[.,_ ]\d{1,18})*)\s*(?P<unit>%|(?:[kmgt]i?)?(?:b|bytes?)?)"
    r"\s*(?:/\s*s(?:ec(?:ond)?)?|per second)?\s*",
    re.ASCII | re.IGNORECASE,
)
_DURATION: Final = re.compile(
    r"\s*(?P<number>\d{1,9}(?:\.\d{1,9})?)\s*(?P<unit>ms|s(?:ec(?:onds?)?)?|m(?:in(?:utes?)?)?|h(?:ours?)?|d(?:ays?)?)?\s*",
    re.ASCII | re.IGNORECASE,
)
_WITH_EXPONENT: Final = re.compile(
    r"\s*(?P<number>\d{1,9}(?:\.\d{1,9})?e[+-]?\d{1,2})\s*", re.ASCII | re.IGNORECASE
)
_LARGEST_EXPONENT: Final = 18
"""That of a LONG. Nobody wants to write a number with more zeros."""
_SECONDS: Final[dict[str, Decimal]] = {
    "ms": Decimal("0.001"),
    "": Decimal(1),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
}
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def number_hint(value: object) -> str:
    """Return `; write 50` and the like for text of a number with a unit or an exponent; empty for any other
    value.
    """
    scientific = _WITH_EXPONENT.fullmatch(value) if isinstance(value, str) else None
    if scientific is not None:
        exact = Decimal(scientific["number"])
        return f"; write {_show(exact)}" if abs(exact.adjusted()) <= _LARGEST_EXPONENT else ""
    found = _WITH_UNIT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return ""
    unit = found["unit"].lower()
    number = _number(found["number"])
    if number is None:
        return ""
    power = _POWERS.get(unit[:1] if unit[:1] in "kmgt" else "", 0)
    binary = number * 1024**power
    if power == 0 or "i" in unit:
        return f"; write {_show(binary)}"
    return f"; write {_show(number * 1000**power)}, or {_show(binary)} for {number} {unit[0].upper()}iB"


def seconds_hint(value: object) -> str:
    """Return `; write 600` for text of a duration with a unit, such as 10m; empty for any other value."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return ""
    unit = (found["unit"] or "").lower()
    return f"; write {_show(Decimal(found['number']) * _SECONDS[unit if unit == 'ms' else unit[:1]])}"


def _number(text: str) -> Decimal | None:
    """The number, if its separators have one meaning: 1,000 and 1.5, but not 1.000,5."""
    grouped = re.fullmatch(r"\d{1,3}(?:[,_ ]\d{3})+", text)
    plain = re.sub(r"[,_ ]", "", text) if grouped else text
    return Decimal(plain) if re.fullmatch(r"\d+(?:\.\d+)?", plain) else None


def _show(number: Decimal) -> str:
    whole = number.to_integral_value()
    return format(whole if whole == number else number.normalize(), "f")
