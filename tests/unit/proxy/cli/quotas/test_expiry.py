"""When a temporary quota ends."""

from datetime import UTC, datetime

import pytest

from proxy.cli.quotas.expiry import parse_duration, parse_time, show_time

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
NOW_MS = 1_796_040_000_000


@pytest.mark.parametrize(
    "text", ["2026-12-01T00:00Z", "2026-12-01T01:00+01:00", "2026-12-01 00:00:00+00:00", "20261201T000000Z"]
)
def test_times(text: str) -> None:
    assert parse_time(text, NOW) == NOW_MS + 12 * 3_600_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tomorrow", "expected a time such as"),
        ("2026-12-01T00:00", "no time zone"),
        ("2026-12-01", "no time zone"),
        ("2026-11-30T12:00Z", "is over"),
        ("2025-12-01T00:00Z", "is over"),
    ],
)
def test_no_times(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_time(text, NOW)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("2h", 7200), ("1h30m", 5400), ("7d", 604_800), ("1d1s", 86_401)],
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text, NOW) == NOW_MS + seconds * 1000


@pytest.mark.parametrize("text", ["", "2", "h", "0s", "-2h", "2h1d", "2 h", "1.5h", "forever"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as"):
        parse_duration(text, NOW)


@pytest.mark.parametrize("text", ["9999999d", f"{'9' * 30}d"])
def test_too_long(text: str) -> None:
    with pytest.raises(ValueError, match="is too long"):
        parse_duration(text, NOW)


def test_shown_in_utc() -> None:
    assert show_time(NOW_MS + 999) == "2026-11-30T12:00:00Z"
    assert show_time(1e300) == "1e+300 ms"
