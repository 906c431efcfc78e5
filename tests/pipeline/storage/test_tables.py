"""Tables: a new one replaces an old one when it is whole, on any file system of Hadoop."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.storage.sources import LINES, Source
from pipeline.storage.tables import Events, write_table
from pipeline.window import Window
from tests.support.messages.usage_events import make_event, write_lines
from tests.support.tables import read_rows

RunJob = Callable[..., Result]


def ids(folder: Path) -> list[int]:
    return sorted(row.id for row in read_rows(folder))


def failing(spark: SparkSession) -> DataFrame:
    """A table whose second partition cannot be computed."""
    broken = F.raise_error(F.lit("broken")).cast("bigint")
    return spark.range(0, 4, 1, 2).select(F.when(F.col("id") < 3, F.col("id")).otherwise(broken).alias("id"))


def test_a_run_that_fails_leaves_the_table_of_the_run_before(spark: SparkSession, tmp_path: Path) -> None:
    write_table(spark.range(2), str(tmp_path), "table")
    with pytest.raises(PySparkException):
        write_table(failing(spark), str(tmp_path), "table")
    assert ids(tmp_path / "table") == [0, 1]
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


def test_a_run_that_was_killed_leaves_the_table_of_the_run_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It was killed in the moment between two renames, or while it wrote; the next run fails."""
    write_table(spark.range(2), str(tmp_path), "table")
    (tmp_path / "table").rename(tmp_path / ".table.old")
    write_table(spark.range(5), str(tmp_path), ".table.new")
    with pytest.raises(PySparkException):
        write_table(failing(spark), str(tmp_path), "table")
    assert ids(tmp_path / "table") == [0, 1]
    write_table(spark.range(3), str(tmp_path), "table")
    assert ids(tmp_path / "table") == [0, 1, 2]


def test_other_jobs_keep_what_ingest_could_not_read(run_job: RunJob, tmp_path: Path) -> None:
    """Also if ingest has found no event yet: the quarantine may have the only copy of the text."""
    bad, good = (write_lines(tmp_path / f"{name}.jsonl", [name]) for name in ("bad", "good"))
    assert run_job("ingest", "--events", bad, "--out", tmp_path / "out").exit_code == 0
    write_lines(good, [make_event()])
    assert run_job("throttle", "--events", good, "--out", tmp_path / "out").exit_code == 0
    assert [row.raw for row in read_rows(tmp_path / "out/quarantine")] == ["bad"]


def test_what_is_no_event_is_kept_from_run_to_run(run_job: RunJob, tmp_path: Path) -> None:
    for name in ("one", "one", "two"):
        lines = write_lines(tmp_path / f"{name}.jsonl", [make_event(), name])
        assert run_job("ingest", "--events", lines, "--out", tmp_path / "out").exit_code == 0
    assert sorted(row.raw for row in read_rows(tmp_path / "out/quarantine")) == ["one", "two"]


def test_a_line_is_parsed_once(spark: SparkSession, tmp_path: Path) -> None:
    """Also by the query for invalid lines, whose condition uses the fields hundreds of times."""
    lines = write_lines(tmp_path / "events.jsonl", [make_event(), "bad"])
    found = Events(spark, Source(LINES, str(lines)), Window()).invalid()
    assert [row.raw for row in found.collect()] == ["bad"]
    spark.conf.set("spark.sql.maxToStringFields", "100000")
    try:
        plan = found._jdf.queryExecution().optimizedPlan().toString()
    finally:
        spark.conf.unset("spark.sql.maxToStringFields")
    assert plan.count("from_json(") == 1
