"""Job: the session, the folder and the quarantine of one run."""

import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from click.testing import Result
from pyspark import StorageLevel
from pyspark.sql import SparkSession
from rich.console import Console

from pipeline.errors import InputError
from pipeline.jobs.job import Job, Options
from pipeline.transforms import tenants
from pipeline.window import Window, make_window
from tests.support.messages.event_tables import as_table
from tests.support.messages.usage_events import counts, make_event, write_lines
from tests.support.tables import read_rows

RunJob = Callable[..., Result]


def job_of(lines: Path, out: Path, output: io.StringIO | None = None) -> Job:
    return Job(Options(str(lines), str(out), Window()), Console(file=output or io.StringIO(), width=20))


def test_a_job_leaves_a_session_alone_that_it_has_not_started(spark: SparkSession, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    with job_of(lines, tmp_path / "out") as job:
        assert job.spark.sparkContext is spark.sparkContext
    assert spark.range(3).count() == 3


def test_kept_events_stay_on_disk_while_the_job_runs(spark: SparkSession, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event(), make_event()])
    with job_of(lines, tmp_path / "out") as job:
        kept = job.kept_events()
        assert job.kept_events() is kept
        assert kept.storageLevel == StorageLevel.DISK_ONLY
        assert kept.count() == 1
    assert kept.storageLevel == StorageLevel.NONE


def test_a_job_says_what_it_wrote_and_read(spark: SparkSession, tmp_path: Path) -> None:
    """One line each, however narrow the terminal is, and a bracket is no markup."""
    output = io.StringIO()
    events: list[dict[str, Any] | str] = [
        make_event(),
        make_event(user="[bold]"),
        make_event(bytes_in=7),
        "no event",
        "none",
    ]
    with job_of(write_lines(tmp_path / "events.jsonl", events), tmp_path / "out", output) as job:
        folder = job.write("usage", job.events())
        assert job.write_text("[red].txt", "text") == str(tmp_path / "out/[red].txt")
        job.say("[red]")
    assert folder == str(tmp_path / "out/usage")
    assert counts(output.getvalue(), folder) == [2]
    assert counts(output.getvalue(), "events read") == [5]
    assert counts(output.getvalue(), str(tmp_path / "out/quarantine")) == [2, 1]
    assert output.getvalue().splitlines()[-1] == "[red]"
    assert (tmp_path / "out/[red].txt").read_text() == "text"


@pytest.mark.parametrize("ends", [(None, None), ("2025-12-31", "2026-01-01")])
def test_the_rows_of_a_run_that_was_killed_are_removed(
    spark: SparkSession, tmp_path: Path, ends: tuple[str | None, str | None]
) -> None:
    """Also by a run that needs no such folder, because its window has both ends."""
    lines, left = write_lines(tmp_path / "events.jsonl", [make_event()]), tmp_path / ".usage.rows"
    left.mkdir()
    (left / "part.parquet").write_text("half")
    options = Options(str(lines), str(tmp_path), make_window(*ends))
    with Job(options, Console(quiet=True)) as job, job.with_period("usage", job.events()) as rows:
        assert rows.count() == 1
    assert not left.exists()


def test_an_output_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """The job says so before it starts Spark."""
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    with pytest.raises(InputError) as failed, job_of(lines, lines / "out"):
        pass
    assert str(lines / "out") in str(failed.value)


def test_another_jobs_quarantine_is_that_runs(run_job: RunJob, tmp_path: Path) -> None:
    """A job replaces the quarantine of its own folder, but adds to that of ingested events."""
    good = write_lines(tmp_path / "good.jsonl", [make_event()])
    first, second = (write_lines(tmp_path / name, [make_event(), name]) for name in ("first", "second"))

    def quarantined(lines: Path, out: str, *jobs: str) -> list[str] | None:
        for job in jobs:
            assert run_job(job, "--events", lines, "--out", tmp_path / out).exit_code == 0
        table = tmp_path / out / "quarantine"
        return sorted(row.raw for row in read_rows(table)) if table.exists() else None

    assert quarantined(first, "out", "throttle") == ["first"]
    assert quarantined(second, "out", "throttle") == ["second"]
    assert quarantined(good, "out", "throttle") is None
    assert quarantined(first, "lake", "ingest") == ["first"]
    assert quarantined(good, "lake", "throttle") == ["first"]
    assert quarantined(second, "lake", "throttle") == ["first", "second"]
    assert quarantined(first, "lake", "ingest") == ["first", "second"]


def test_the_rows_are_written_once_if_the_period_is_known(spark: SparkSession, tmp_path: Path) -> None:
    """Statistics of Parquet files tell it, but not that of lines."""
    (tmp_path / "in").mkdir()
    pq.write_table(as_table([make_event()]), tmp_path / "in/x.parquet")
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    for source, is_known in ((tmp_path / "in", True), (lines, False)):
        with job_of(source, tmp_path / "out") as job:
            with job.with_period("chargeback", job.sums(tenants.SUMS)) as rows:
                assert (tmp_path / "out/.chargeback.rows").exists() != is_known
                (row,) = rows.collect()
            assert (row.user, row["to"] - row["from"]) == ("alice", timedelta(seconds=10))
