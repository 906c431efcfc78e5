"""Compaction: fewer files, the same events, whatever is killed."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.sql import DataFrame, SparkSession

from pipeline.lake.compaction import MANY, compact_parquet
from pipeline.storage.filesystem import FilePath
from pipeline.transforms.events import with_date
from tests.support.messages.usage_events import HOUR_MS, make_event, write_lines
from tests.support.tables import read_rows

Frame = Callable[..., DataFrame]
RunJob = Callable[..., Result]


def write(frame: Frame, folder: Path, first: int, last: int, day: int = 0) -> None:
    """A file for each number in a date."""
    events = frame(
        *[make_event(at=day * 24 * HOUR_MS + each * 1000, bytes_in=each) for each in range(first, last)]
    )
    rows = with_date(events).coalesce(1).write.option("maxRecordsPerFile", 1)
    rows.mode("append").partitionBy("date").parquet(str(folder))


def files(folder: Path) -> dict[str, int]:
    return {
        date.name: len(list(date.glob("*.parquet"))) for date in sorted(folder.iterdir()) if date.is_dir()
    }


def test_a_date_with_many_small_files_has_one(spark: SparkSession, frame: Frame, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    write(frame, folder, 0, MANY + 1)
    write(frame, folder, 0, 2, day=1)
    before = sorted(read_rows(folder))
    assert compact_parquet(spark, str(folder)) == MANY
    assert files(folder) == {"date=2025-12-31": 1, "date=2026-01-01": 2}
    assert sorted(read_rows(folder)) == before
    assert compact_parquet(spark, str(folder)) == 0


def test_a_run_that_is_killed_loses_no_event(
    spark: SparkSession, frame: Frame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_job: RunJob
) -> None:
    """It may leave events twice, which the next run of any job counts once."""
    folder = tmp_path / "events"
    write(frame, folder, 1, MANY + 2)

    def killed(path: FilePath) -> None:
        if str(path).endswith(".parquet"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(FilePath, "delete", killed)
        with pytest.raises(KeyboardInterrupt):
            compact_parquet(spark, str(folder))
    assert files(folder)["date=2025-12-31"] == MANY + 2
    assert run_job("usage", "--events", folder, "--out", tmp_path).exit_code == 0
    total = sum(range(1, MANY + 2))
    assert [row.bytes_in for row in read_rows(tmp_path / "usage")] == [total]
    compact_parquet(spark, str(folder))
    assert files(folder)["date=2025-12-31"] == 1
    assert sum(row.bytes_in for row in read_rows(folder)) == total


def test_ingest_compacts(frame: Frame, tmp_path: Path, run_job: RunJob) -> None:
    write(frame, tmp_path / "events", 0, MANY)
    lines = write_lines(tmp_path / "more.jsonl", [make_event(at=999_000)])
    assert run_job("ingest", "--events", lines, "--out", tmp_path, "--compact").exit_code == 0
    assert files(tmp_path / "events") == {"date=2025-12-31": 1}
    assert len(read_rows(tmp_path / "events")) == MANY + 1
