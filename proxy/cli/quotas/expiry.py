"""When a temporary quota ends, as the command line has it, in ms since the epoch."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

EXPIRES_AT_MS: Final = "expires_at_ms"
"""The key of AlterClientQuotas that carries it, for the entry's other keys (docs/quotas-as-code.md)."""

_DURATION: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def parse_time(text: str, now: datetime) -> int:
    """An ISO 8601 time with its zone, after `now`. Raises ValueError with the sentence to show."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expected a time such as 2026-12-01T00:00Z, got {text!r}") from None
    if time.tzinfo is None:
        raise ValueError(f"{text} has no time zone; end it with Z for UTC, or with an offset such as +01:00")
    if time <= now:
        raise ValueError(f"{text} is over")
    return _in_ms(time)


def parse_duration(text: str, now: datetime) -> int:
    """`7d`, `2h`, `1h30m`, `90s` from `now` on. Raises ValueError with the sentence to show."""
    match = _DURATION.fullmatch(text)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()) if match else (0, 0, 0, 0)
    try:
        time = now + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        raise ValueError(f"{text} is too long") from None
    if time <= now:
        raise ValueError(f"expected a duration such as 2h, 1h30m or 7d, got {text!r}")
    return _in_ms(time)


def show_time(at_ms: float) -> str:
    """UTC, to the second; the number itself where it is no time of this calendar."""
    try:
        time = datetime.fromtimestamp(at_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{at_ms:g} ms"
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _in_ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)
