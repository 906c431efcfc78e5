"""Numbers and times as the user writes and reads them."""

import re
from datetime import UTC, datetime

import pytest

from proxy.cli.quotas.values import (
    parse_duration,
    parse_number,
    parse_time,
    plain_number,
    show_number,
    show_time,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
NOW_MS = 1_796_040_000_000


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, 1.0), (2.5, 2.5), ("1048576", 1048576.0), ("1e6", 1e6), (" 7 ", 7.0), (-1, -1.0)],
)
def test_numbers_are_parsed(value: object, number: float) -> None:
    assert parse_number(value) == number


@pytest.mark.parametrize("value", [True, None, "", "1 MiB", "nan", float("inf"), "-inf", [], 10**400])
def test_other_values_are_no_numbers(value: object) -> None:
    with pytest.raises(ValueError, match="expected a number"):
        parse_number(value)


def test_whole_numbers_are_shown_without_a_fraction() -> None:
    assert show_number(1e9) == "1000000000"
    assert show_number(12.5) == "12.5"
    assert isinstance(plain_number(3.0), int)


def test_kafkas_unlimited_value_survives_the_round_trip() -> None:
    assert parse_number(show_number(float(2**63 - 1))) == float(2**63 - 1)


@pytest.mark.parametrize(
    "text", ["2026-12-01T00:00Z", "2026-12-01T01:00+01:00", "2026-12-01 00:00:00+00:00", "20261201T000000Z"]
)
def test_times_are_parsed(text: str) -> None:
    assert parse_time(text, NOW) == NOW_MS + 12 * 3_600_000


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("tomorrow", "'tomorrow'"),
        ("2026-12-01T00:00", "2026-12-01T00:00 "),
        ("2026-12-01", "2026-12-01 "),
        ("2026-11-30T12:00Z", "2026-11-30T12:00Z "),
        ("2025-12-01T00:00Z", "2025-12-01T00:00Z "),
    ],
)
def test_times_without_a_zone_or_in_the_past_are_rejected(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=re.escape(named)):
        parse_time(text, NOW)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("2h", 7200), ("1h30m", 5400), ("7d", 604_800), ("1d1s", 86_401)],
)
def test_durations_are_parsed(text: str, seconds: int) -> None:
    assert parse_duration(text, NOW) == NOW_MS + seconds * 1000


@pytest.mark.parametrize("text", ["", "2", "h", "0s", "-2h", "2h1d", "2 h", "1.5h", "forever"])
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        parse_duration(text, NOW)


@pytest.mark.parametrize("text", ["9999999d", f"{'9' * 30}d"])
def test_durations_beyond_the_calendar_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse_duration(text, NOW)


def test_times_are_shown_in_utc() -> None:
    assert show_time(NOW_MS + 999) == "2026-11-30T12:00:00Z"
    assert show_time(1e300) == "1e+300 ms"
