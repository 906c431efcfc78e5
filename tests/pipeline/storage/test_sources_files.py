"""Files with events as they occur: empty, unfinished, of other programs, and with unusual names of users."""

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result
from pyspark.sql import DataFrame, SparkSession

from pipeline.storage.formats import PARQUET
from pipeline.storage.sources import Source, read_checked
from pipeline.window import make_window
from tests.support.messages.usage_events import HOUR_MS, counts, make_event, write_lines
from tests.support.tables import read_rows

Frame = Callable[..., DataFrame]
RunJob = Callable[..., Result]
DAY_MS = 24 * HOUR_MS
NAMES = ['quo"te', "new\nline", "com,ma", "back\\slash", "tab\t", "=1+1", "", "ü😀"]


def test_a_folder_of_files_that_are_being_written(run_job: RunJob, tmp_path: Path) -> None:
    """A line that is not whole yet is quarantined, and is an event once it is whole. One is not UTF-8."""
    folder, out = tmp_path / "in", tmp_path / "out"
    write_lines(folder / "users.jsonl", [make_event(user=name) for name in NAMES])
    (folder / "empty.jsonl").touch()
    (folder / "latin-1.jsonl").write_bytes(b"caf\xe9\n")
    (folder / "one.jsonl").write_text(json.dumps(make_event(user="no newline")))
    whole = json.dumps(make_event(user="unfinished"))
    growing = folder / "growing.jsonl"
    growing.write_text(f"{json.dumps(make_event(user='windows'))}\r\n{whole[:100]}")
    users = []
    for _ in range(2):
        result = run_job("ingest", "--events", folder, "--out", out)
        assert result.exit_code == 0, result.output
        users.append({row.user for row in read_rows(out / "events")})
        growing.write_text(f"{json.dumps(make_event(user='windows'))}\r\n{whole}\n")
    assert users[0] == {*NAMES, "no newline", "windows"}
    assert users[1] == users[0] | {"unfinished"}
    assert {row.raw for row in read_rows(out / "quarantine")} == {whole[:100], "caf\ufffd"}
    assert len(read_rows(out / "quarantine")) == 2


def test_parquet_files_of_other_programs(run_job: RunJob, frame: Frame, tmp_path: Path) -> None:
    """An unknown column is ignored, and a null where there must be a value is quarantined."""
    table = frame(make_event(), make_event(at=10_000)).selectExpr("*", "'x' AS region", "1 AS date")
    table.selectExpr(
        "* EXCEPT (user)", "IF(bytes_in > 0 AND interval_start_ms % 60000 = 0, user, NULL) AS user"
    ).write.parquet(str(tmp_path / "in"))
    result = run_job("usage", "--events", tmp_path / "in", "--out", tmp_path / "out", "--from", "2025-12-31")
    assert result.exit_code == 0, result.output
    assert counts(result.output, "events read") == [2]
    (bad,) = read_rows(tmp_path / "out/quarantine")
    assert bad.reason == "user is missing or no string"
    frame(make_event(at=20_000)).selectExpr("* EXCEPT (bytes_in)", "'many' AS bytes_in").write.mode(
        "append"
    ).parquet(str(tmp_path / "in"))
    result = run_job("usage", "--events", tmp_path / "in", "--out", tmp_path / "out")
    assert result.exit_code in (1, 2), result.output
    assert result.output.splitlines()[-1].startswith("quota-pipeline: ")
    assert ".parquet" in result.output.splitlines()[-1]


def test_an_interval_over_midnight_and_over_the_change_of_a_clock(run_job: RunJob, tmp_path: Path) -> None:
    """An interval counts in the hour in which it begins. Hours are of UTC, so no clock change doubles one."""
    before_midnight = 12 * HOUR_MS - 5000
    summer_ends = 1_761_440_400_000
    """2025-10-26T01:00:00Z."""
    events = [make_event(at=before_midnight, interval_ms=10_000)]
    events += [make_event(interval_start_ms=summer_ends + half * HOUR_MS // 2) for half in range(-2, 4)]
    lines = write_lines(tmp_path / "events.jsonl", events)
    assert run_job("usage", "--events", lines, "--out", tmp_path).exit_code == 0
    rows = read_rows(tmp_path / "usage")
    assert sorted((str(row.hour), str(row.date), row.requests) for row in rows) == [
        ("2025-10-26 00:00:00", "2025-10-26", 20),
        ("2025-10-26 01:00:00", "2025-10-26", 20),
        ("2025-10-26 02:00:00", "2025-10-26", 20),
        ("2025-12-31 23:00:00", "2025-12-31", 10),
    ]


def test_dates_that_are_not_near_the_window_are_not_read(
    spark: SparkSession, run_job: RunJob, tmp_path: Path
) -> None:
    days = [make_event(at=day * DAY_MS, requests=day + 1) for day in range(6)]
    assert (
        run_job("ingest", "--events", write_lines(tmp_path / "e.jsonl", days), "--out", tmp_path).exit_code
        == 0
    )
    source, window = Source(PARQUET, str(tmp_path / "events")), make_window("2026-01-03", "2026-01-04")
    checked = read_checked(spark, source, window)
    assert {row.requests for row in checked.collect()} == {3, 4, 5}
    assert {row.requests for row in read_checked(spark, source).collect()} == {1, 2, 3, 4, 5, 6}
    result = run_job(
        "usage", "--events", source.place, "--out", tmp_path, "--from", "2026-01-03", "--to", "2026-01-04"
    )
    assert counts(result.output, "events read") == [3]
    assert [row.requests for row in read_rows(tmp_path / "usage")] == [4]
