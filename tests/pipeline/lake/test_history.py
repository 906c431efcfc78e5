"""Tables by date: a run replaces the dates that it computed, and the table keeps all others."""

import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.lake.history import History
from pipeline.window import Window, make_window
from tests.support.messages.usage_events import HOUR_MS, make_event, write_lines
from tests.support.tables import read_rows, read_table

Rows = Callable[..., DataFrame]
RunJob = Callable[..., Result]
DAY_MS = 24 * HOUR_MS
MOVERS = re.compile("<h2>Top movers</h2>.*?</section>", re.DOTALL)
FIRST, SECOND, THIRD = date(2025, 12, 31), date(2026, 1, 1), date(2026, 1, 2)
"""Events without `at` begin at 12:00 of the first day."""
ALL = Window()


def stored(folder: Path) -> list[tuple[date, int, int]]:
    """Date, hour and bytes of each row."""
    return sorted((row.date, row.hour.hour, row.bytes_in) for row in read_rows(folder))


def days(*bytes_in: int) -> list[dict[str, object]]:
    """An event at noon of each of these days."""
    return [make_event(at=DAY_MS * number, bytes_in=size) for number, size in enumerate(bytes_in) if size]


@pytest.fixture
def rows(spark: SparkSession) -> Rows:
    """Make a table with the hour and the bytes of each event, and one more column."""

    def make(*events: dict[str, Any]) -> DataFrame:
        found = [
            (event["interval_start_ms"] // HOUR_MS * HOUR_MS // 1000, event["bytes_in"]) for event in events
        ]
        table = spark.createDataFrame(found, "hour bigint, bytes_in bigint")
        return table.select(F.timestamp_seconds("hour").alias("hour"), "bytes_in", F.lit(0.5).alias("share"))

    return make


@pytest.fixture
def write(rows: Rows, tmp_path: Path) -> Callable[..., list[date]]:
    """Write the rows of events with a window, and return the dates that were removed."""

    def run(events: list[dict[str, object]], start: str | None = None, end: str | None = None) -> list[date]:
        written = History(rows(*events), str(tmp_path), "usage", make_window(start, end)).write()
        assert written.rows.count() == len(events)
        return written.removed

    return run


def test_dates_are_in_utc_whatever_the_users_settings(run_job: RunJob, tmp_path: Path) -> None:
    """In another zone, the first hours of a day are of the day before, whose rows a run would replace."""
    lines = write_lines(tmp_path / "events.jsonl", [*days(1, 2), make_event(at=DAY_MS // 2, bytes_in=3)])
    zone = "--conf", "spark.sql.session.timeZone=America/New_York"
    for window in (("2025-12-31", "2026-01-01"), ("2026-01-01", "2026-01-02")):
        ends = "--from", window[0], "--to", window[1]
        result = run_job("usage", "--events", lines, "--out", tmp_path / "out", *ends, *zone)
        assert result.exit_code == 0, result.output
    assert stored(tmp_path / "out/usage") == [(FIRST, 12, 1), (SECOND, 0, 3), (SECOND, 12, 2)]


@pytest.mark.parametrize(
    ("job", "runs"), [("throttle", (FIRST, SECOND, SECOND)), ("report", (FIRST, SECOND))]
)
def test_daily_runs_build_a_history(
    run_job: RunJob, tmp_path: Path, job: str, runs: tuple[date, ...]
) -> None:
    """Both jobs write with History, which replaces the date of a second run."""
    bound = {"throttle_ms": 5, "throttled_requests": 1, "quota": "producer_byte_rate"}
    events = [make_event(**bound, at=DAY_MS * day, user=f"user-{day}") for day in range(2)]
    lines = write_lines(tmp_path / "events.jsonl", events)
    for day in runs:
        window = ("--from", day, "--to", date.fromordinal(day.toordinal() + 1))
        result = run_job(job, "--events", lines, "--out", tmp_path / "out", *window)
        assert result.exit_code == 0, result.output
        assert "throttle: 1 rows" in result.output or job == "report"
        if job == "report":
            assert (tmp_path / "out/throttle.csv").read_text().count("\n") == 2
            page = (tmp_path / "out/report.html").read_text()
            # Only the movers name tenants of the period before.
            page, movers = MOVERS.subn("", page)
            assert movers == (day == SECOND)
            assert [f"user-{number}" in page for number in range(2)] == [
                day == each for each in (FIRST, SECOND)
            ]
    found = [(row.date, row.user) for row in read_rows(tmp_path / "out/throttle")]
    assert sorted(found) == [(FIRST, "user-0"), (SECOND, "user-1")]
    assert sorted(path.name for path in (tmp_path / "out/throttle").glob("date=*")) == [
        f"date={day}" for day in (FIRST, SECOND)
    ]


def test_without_a_window_the_dates_of_the_events_are_replaced(
    write: Callable[..., list[date]], tmp_path: Path
) -> None:
    write(days(1, 2, 3))
    assert write(days(0, 20)) == []
    assert stored(tmp_path / "usage") == [(FIRST, 12, 1), (SECOND, 12, 20), (THIRD, 12, 3)]
    assert write([]) == []
    assert len(stored(tmp_path / "usage")) == 3


def test_a_date_of_the_window_without_events_loses_its_rows(
    run_job: RunJob, write: Callable[..., list[date]], tmp_path: Path
) -> None:
    write(days(1, 2, 3))
    assert write(days(0, 0, 30), "2026-01-01") == []
    assert stored(tmp_path / "usage") == [(FIRST, 12, 1), (SECOND, 12, 2), (THIRD, 12, 30)]
    assert write(days(10), "2025-12-01", "2026-01-02") == [SECOND]
    assert stored(tmp_path / "usage") == [(FIRST, 12, 10), (THIRD, 12, 30)]
    lines = write_lines(tmp_path / "events.jsonl", [])
    window = ("--from", "2025-12-01", "--to", "2026-02-01")
    result = run_job("usage", "--events", lines, "--out", tmp_path, *window)
    assert "removed 2025-12-31, 2026-01-02" in result.output
    assert stored(tmp_path / "usage") == []
    write(days(1))
    assert stored(tmp_path / "usage") == [(FIRST, 12, 1)]


def test_hours_outside_the_window_stay(write: Callable[..., list[date]], tmp_path: Path) -> None:
    write([make_event(at=HOUR_MS * hour, bytes_in=hour + 1) for hour in range(14)])
    assert write([make_event(at=HOUR_MS, bytes_in=20)], "2025-12-31T13:00", "2025-12-31T15:00") == []
    first = [(FIRST, 12, 1), (FIRST, 13, 20), *[(FIRST, 12 + hour, hour + 1) for hour in range(3, 12)]]
    second = [(SECOND, 0, 13), (SECOND, 1, 14)]
    assert stored(tmp_path / "usage") == [*first, *second]
    assert write([], "2025-12-31T13:30", "2026-01-01T01:00") == []
    assert stored(tmp_path / "usage") == [(FIRST, 12, 1), (SECOND, 1, 14)]


def test_a_row_of_a_day_is_replaced_as_a_whole(run_job: RunJob, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", days(1, 2))
    for window in ((), ("--from", "2025-12-31T06:00", "--to", "2025-12-31T18:00")):
        result = run_job("usage", "--by", "day", "--events", lines, "--out", tmp_path, *window)
        assert result.exit_code == 0, result.output
    assert "usage: 1 rows" in result.output
    assert stored(tmp_path / "usage") == [(FIRST, 0, 1), (SECOND, 0, 2)]


def test_a_table_of_an_earlier_version_keeps_its_other_dates(
    rows: Rows, write: Callable[..., list[date]], tmp_path: Path
) -> None:
    """It has no dates, and lacks columns of this version."""
    events = [*days(1, 2, 3), make_event(at=HOUR_MS, bytes_in=7)]
    rows(*events).drop("share").write.parquet(str(tmp_path / "usage"))
    window = ("2025-12-31T12:00", "2025-12-31T13:00")
    assert write(days(10), *window) == []
    later = [(SECOND, 12, 2), (THIRD, 12, 3)]
    assert stored(tmp_path / "usage") == [(FIRST, 12, 10), (FIRST, 13, 7), *later]
    assert "share" in read_table(tmp_path / "usage").column_names


def failing(table: DataFrame) -> DataFrame:
    broken = F.raise_error(F.lit("broken")).cast("bigint")
    return table.withColumn("bytes_in", F.when(F.col("bytes_in") < 20, F.col("bytes_in")).otherwise(broken))


def test_a_run_that_fails_leaves_every_date(
    rows: Rows, write: Callable[..., list[date]], tmp_path: Path
) -> None:
    write(days(1, 2))
    with pytest.raises(PySparkException):
        History(failing(rows(*days(10, 20))), str(tmp_path), "usage", ALL).write()
    assert stored(tmp_path / "usage") == [(FIRST, 12, 1), (SECOND, 12, 2)]
    assert [path.name for path in tmp_path.iterdir()] == ["usage"]


def test_a_run_that_was_killed_loses_no_date(
    rows: Rows, write: Callable[..., list[date]], tmp_path: Path
) -> None:
    """It was killed between the renames of the second date, after those of the first one."""
    write(days(1, 2, 3))
    History(rows(*days(10, 20)), str(tmp_path), ".usage.new", ALL).write()
    table, aside = tmp_path / "usage", tmp_path / ".usage.new"
    (table / f"date={FIRST}").rename(table / f".date={FIRST}.old")
    (aside / f"date={FIRST}").rename(table / f"date={FIRST}")
    (table / f"date={SECOND}").rename(table / f".date={SECOND}.old")
    with pytest.raises(PySparkException):
        History(failing(rows(*days(10, 20))), str(tmp_path), "usage", ALL).write()
    assert stored(table) == [(FIRST, 12, 10), (SECOND, 12, 2), (THIRD, 12, 3)]
    write(days(0, 20))
    assert stored(table) == [(FIRST, 12, 10), (SECOND, 12, 20), (THIRD, 12, 3)]
    assert sorted(path.name for path in table.iterdir() if path.is_dir()) == [
        f"date={day}" for day in (FIRST, SECOND, THIRD)
    ]


def test_a_history_at_a_url(rows: Rows, mounted: str, tmp_path: Path) -> None:
    for events, window in (
        (days(1, 2), ALL),
        (days(0, 20), ALL),
        ([], make_window("2025-12-31", "2026-01-01")),
    ):
        History(rows(*events), mounted, "usage", window).write()
    assert stored(tmp_path / "usage") == [(SECOND, 12, 20)]
