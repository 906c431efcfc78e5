"""Tables under --out as Parquet, known to a catalog; test_log_tables.py has the other formats."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.sql import SparkSession

from pipeline.errors import InputError
from pipeline.lake.lake import Lake
from pipeline.storage.formats import DELTA
from tests.support.messages.usage_events import HOUR_MS, make_event, write_lines

RunJob = Callable[..., Result]
NAME = "usage_of_teams"


@pytest.fixture
def named(spark: SparkSession) -> Iterator[str]:
    yield NAME
    spark.sql(f"DROP TABLE IF EXISTS {NAME}")


def test_a_catalog_knows_the_dates_of_a_table(
    spark: SparkSession, run_job: RunJob, tmp_path: Path, named: str
) -> None:
    events = [make_event(), make_event(at=24 * HOUR_MS, requests=7)]
    lines = write_lines(tmp_path / "events.jsonl", events)
    for day, rows in (("2025-12-31", [10]), ("2026-01-01", [7, 10])):
        window = ("--from", f"{day}T00:00", "--to", f"{day}T23:00")
        result = run_job("usage", "--events", lines, "--out", tmp_path, "--catalog-table", named, *window)
        assert result.exit_code == 0, result.output
        assert sorted(row.requests for row in spark.table(named).collect()) == rows
    empty = write_lines(tmp_path / "none.jsonl", [])
    window = ("--from", "2026-01-01", "--to", "2026-01-02")
    run_job("usage", "--events", empty, "--out", tmp_path, "--catalog-table", named, *window)
    assert [row.requests for row in spark.table(named).collect()] == [10]


def test_a_catalog_knows_a_table_that_has_had_no_rows(
    spark: SparkSession, run_job: RunJob, tmp_path: Path, named: str
) -> None:
    """Nobody was throttled in the first period, and later in none of the table."""
    lines = write_lines(tmp_path / "events.jsonl", [make_event(throttled_requests=3, throttle_ms=5)])
    empty = write_lines(tmp_path / "none.jsonl", [])
    window = ("--from", "2025-12-31", "--to", "2026-01-01")
    for events, rows in ((empty, []), (lines, [3]), (empty, []), (lines, [3])):
        result = run_job("throttle", "--events", events, "--out", tmp_path, "--catalog-table", named, *window)
        assert result.exit_code == 0, result.output
        found = spark.table(named)
        assert [row.throttled_requests for row in found.collect()] == rows
        assert found.columns[-1] == "date"


def test_a_name_of_another_table_is_rejected(
    spark: SparkSession, run_job: RunJob, tmp_path: Path, named: str
) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    for out, exit_code in (("one", 0), ("two", 2)):
        result = run_job("usage", "--events", lines, "--out", tmp_path / out, "--catalog-table", named)
        assert result.exit_code == exit_code, result.output
    assert "one" in result.output
    assert named in result.output
    wrong = ("--catalog-table", "a; DROP TABLE b")
    assert run_job("usage", "--events", lines, "--out", tmp_path, *wrong).exit_code == 2


def test_a_table_of_another_format_is_not_touched(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(3)
    Lake(spark, str(tmp_path)).replace(rows, "table")
    for write in (Lake(spark, str(tmp_path), DELTA).replace, Lake(spark, str(tmp_path), DELTA).append):
        with pytest.raises(InputError) as failed:
            write(rows, "table")
        assert "--format parquet" in str(failed.value)
    found = Lake(spark, str(tmp_path)).read("table")
    assert found is not None
    assert found.count() == 3
    assert Lake(spark, str(tmp_path)).read("none") is None


@pytest.mark.parametrize(("job", "table"), [("report", "usage"), ("recommend", "skipped")])
def test_a_job_that_writes_parquet_keeps_a_table_of_another_format(
    run_job: RunJob, tmp_path: Path, job: str, table: str
) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    log = tmp_path / table / "_delta_log/00000000000000000000.json"
    log.parent.mkdir(parents=True)
    log.write_text("{}")
    result = run_job(job, "--events", lines, "--out", tmp_path)
    assert result.exit_code == 2, result.output
    assert "delta" in result.output
    assert log.exists()
