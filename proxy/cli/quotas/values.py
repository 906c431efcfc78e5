"""Values that the user writes and reads: numbers of quotas, and times when a temporary quota ends."""

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from proxy.config.yaml.units import number_hint

_DURATION: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def parse_number(value: object) -> float:
    """A finite number from YAML or the command line; YAML reads `1e6` as text. Raises ValueError, with the
    number to write if the value has a unit.
    """
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            pass
        else:
            if math.isfinite(number):
                return number
    raise ValueError(f"expected a number{number_hint(value)}")


def plain_number(value: float) -> int | float:
    """The value, as an int if it is whole. Quotas are float64 on the wire."""
    return int(value) if value.is_integer() else value


def show_number(value: float) -> str:
    """The value as text, which parse_number() reads."""
    return str(plain_number(value))


def show_value(value: float | str) -> str:
    """The value of a client quota or of a config as text."""
    return value if isinstance(value, str) else show_number(value)


def parse_time(text: str, now: datetime) -> int:
    """An ISO 8601 time with its zone, after `now`, in ms since the epoch. Raises ValueError with the sentence
    to show.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expected a time such as 2026-12-01T00:00Z, got {text!r}") from None
    if time.tzinfo is None:
        raise ValueError(f"{text} has no time zone; end it with Z for UTC, or with an offset such as +01:00")
    if time <= now:
        raise ValueError(f"{text} is in the past; it must be in the future")
    return _in_ms(time)


def parse_duration(text: str, now: datetime) -> int:
    """`7d`, `2h`, `1h30m` or `90s` after `now`, in ms since the epoch. Raises ValueError with the sentence to
    show.
    """
    match = _DURATION.fullmatch(text)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()) if match else (0, 0, 0, 0)
    try:
        time = now + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        raise ValueError(f"{text} ends after the year 9999; use a shorter duration") from None
    if time <= now:
        raise ValueError(f"expected a duration such as 2h, 1h30m or 7d, got {text!r}")
    return _in_ms(time)


def show_time(at_ms: float) -> str:
    """The time in UTC, to the second; the number itself if it is outside the calendar."""
    try:
        time = datetime.fromtimestamp(at_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{at_ms:g} ms"
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _in_ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)
