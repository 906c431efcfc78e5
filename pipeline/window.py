"""The time window of a job."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pipeline.errors import InputError


@dataclass(frozen=True, slots=True)
class Window:
    """From `start_ms`, inclusive, to `end_ms`, exclusive, in ms since the epoch; None: no bound."""

    start_ms: int | None = None
    end_ms: int | None = None


ALWAYS: Final = Window()


def parse_time(text: str) -> int:
    """Parse `2026-01-31`, `2026-01-31T14:00`, or with a zone (UTC by default), to ms since the epoch."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{text!r} is not a time; expected 2026-01-31, 2026-01-31T14:00 or 2026-01-31T14:00:00Z"
        ) from None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def make_window(start: str | None, end: str | None) -> Window:
    """Make the window from two texts. Raises InputError if one is not a time, or the window is empty."""
    window = Window(None if start is None else parse_time(start), None if end is None else parse_time(end))
    if window.start_ms is not None and window.end_ms is not None and window.end_ms <= window.start_ms:
        raise InputError(f"--to {end} is not after --from {start}")
    return window


def previous(window: Window) -> Window | None:
    """Return the period before a window: as many calendar months (UTC) if the window consists of whole
    months, otherwise the same length of time. None if the window lacks an end.
    """
    if window.start_ms is None or window.end_ms is None:
        return None
    months = _month(window.start_ms), _month(window.end_ms)
    if months[0] is None or months[1] is None:
        return Window(2 * window.start_ms - window.end_ms, window.start_ms)
    year, month = divmod(2 * months[0] - months[1], 12)
    first = datetime(year, month + 1, 1, tzinfo=UTC)
    return Window(round(first.timestamp() * 1000), window.start_ms)


def _month(time_ms: int) -> int | None:
    """Return the months from January of the year 0 (UTC) to this time; None if no month begins then."""
    time = datetime.fromtimestamp(time_ms / 1000, UTC)
    if time != datetime(time.year, time.month, 1, tzinfo=UTC):
        return None
    return 12 * time.year + time.month - 1
