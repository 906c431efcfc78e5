"""Tables: a new one replaces an old one when it is whole, on any file system of Hadoop."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.tables import write_table
from tests.pipeline.test_report import GOLDEN
from tests.support.messages.usage_events import make_event, write_lines

RunJob = Callable[..., Result]


def ids(spark: SparkSession, folder: str | Path) -> list[int]:
    return sorted(row.id for row in spark.read.parquet(str(folder)).collect())


def failing(spark: SparkSession) -> DataFrame:
    """A table whose second partition cannot be computed."""
    broken = F.raise_error(F.lit("broken")).cast("bigint")
    return spark.range(0, 4, 1, 2).select(F.when(F.col("id") < 3, F.col("id")).otherwise(broken).alias("id"))


def test_a_run_that_fails_leaves_the_table_of_the_run_before(spark: SparkSession, tmp_path: Path) -> None:
    write_table(spark.range(2), str(tmp_path), "table")
    with pytest.raises(PySparkException):
        write_table(failing(spark), str(tmp_path), "table")
    assert ids(spark, tmp_path / "table") == [0, 1]
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
    assert ids(spark, tmp_path / "table") == [0, 1]
    write_table(spark.range(3), str(tmp_path), "table")
    assert ids(spark, tmp_path / "table") == [0, 1, 2]


@pytest.fixture
def mounted(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A URL of a file system that is not the local one."""
    name = "fs.viewfs.mounttable.lake.link./data"
    settings = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    settings.set(name, tmp_path.as_uri())
    settings.set("fs.viewfs.impl.disable.cache", "true")
    yield "viewfs://lake/data"
    settings.unset(name)


@pytest.mark.parametrize("scheme", ["file", "viewfs"])
def test_what_is_there_already_is_not_added_to_a_url(
    spark: SparkSession, run_job: RunJob, tmp_path: Path, mounted: str, scheme: str
) -> None:
    url = mounted if scheme == "viewfs" else tmp_path.as_uri()
    write_lines(tmp_path / "lines/events.jsonl", [make_event(), make_event(partition=1), "no event"])
    for added in (2, 0):
        result = run_job("ingest", "--events", f"{url}/lines", "--out", f"{url}/out")
        assert result.exit_code == 0, result.output
        assert f"{added} events added" in result.output
    assert spark.read.parquet(str(tmp_path / "out/events")).count() == 2
    assert spark.read.parquet(str(tmp_path / "out/quarantine")).count() == 1
    result = run_job("recommend", "--events", f"{url}/out/events", "--out", f"{url}/out")
    assert result.exit_code == 0, result.output
    assert "alice" in (tmp_path / "out/quotas.yaml").read_text()


def test_files_at_a_url(run_job: RunJob, tmp_path: Path, mounted: str) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    result = run_job("report", "--events", lines, "--out", mounted)
    assert result.exit_code == 0, result.output
    for file in ("usage.csv", "report.html"):
        assert "alice" in (tmp_path / file).read_text()
    cluster = GOLDEN.parents[2] / "config/pipeline/cluster.json"
    assert run_job("reassign", "--cluster", cluster, "--out", mounted).exit_code == 0
    assert "move_ratio" in (tmp_path / "plan.json").read_text()


def test_a_url_without_files(run_job: RunJob, tmp_path: Path, mounted: str) -> None:
    result = run_job("usage", "--events", f"{mounted}/nothing", "--out", tmp_path)
    assert result.exit_code == 2
    assert f"{mounted}/nothing does not exist" in result.output
