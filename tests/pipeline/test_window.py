"""Window: times with and without a zone, and windows that are empty."""

from datetime import UTC, datetime

import pytest

from pipeline.errors import InputError
from pipeline.window import Window, make_window, parse_time


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T14:00", datetime(2026, 1, 31, 14, tzinfo=UTC)),
        ("2026-01-31T14:00:00Z", datetime(2026, 1, 31, 14, tzinfo=UTC)),
        ("2026-01-31T14:00+02:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
    ],
)
def test_a_time_without_a_zone_is_in_utc(text: str, time: datetime) -> None:
    assert parse_time(text) == time.timestamp() * 1000


def test_a_window_may_be_open() -> None:
    assert make_window(None, None) == Window(None, None)
    assert make_window("1970-01-02", None) == Window(86_400_000, None)
    assert make_window(None, "1970-01-02") == Window(None, 86_400_000)


@pytest.mark.parametrize(
    ("start", "end"),
    [("2026-01-02", "2026-01-01"), ("2026-01-01", "2026-01-01"), ("yesterday", None), (None, "31.1.2026")],
)
def test_no_window(start: str | None, end: str | None) -> None:
    with pytest.raises(InputError):
        make_window(start, end)
