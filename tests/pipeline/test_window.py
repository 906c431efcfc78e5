"""Window: times with and without a zone, and windows that are empty."""

from datetime import UTC, datetime

import pytest

from pipeline.errors import InputError
from pipeline.window import Window, make_window, parse_time, previous


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


@pytest.mark.parametrize(
    ("window", "before"),
    [
        (("2026-03-01", "2026-04-01"), ("2026-02-01", "2026-03-01")),
        (("2026-01-01", "2026-02-01"), ("2025-12-01", "2026-01-01")),
        (("2026-01-01", "2026-04-01"), ("2025-10-01", "2026-01-01")),
        (("2026-01-01", "2027-01-01"), ("2025-01-01", "2026-01-01")),
        (("2024-03-01", "2024-03-31"), ("2024-01-31", "2024-03-01")),
        (("2026-03-30T14:00", "2026-03-30T15:00"), ("2026-03-30T13:00", "2026-03-30T14:00")),
        (("2026-03-01T00:00:05", "2026-04-01"), ("2026-01-29T00:00:10", "2026-03-01T00:00:05")),
    ],
)
def test_the_period_before(window: tuple[str, str], before: tuple[str, str]) -> None:
    assert previous(make_window(*window)) == make_window(*before)


def test_a_window_without_an_end_has_no_period_before() -> None:
    assert previous(make_window("2026-01-01", None)) is None
    assert previous(make_window(None, "2026-01-01")) is None
