"""Delta Lake and Apache Iceberg: jobs build a history, and a write that fails changes nothing."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.cli.main import main
from pipeline.jobs.stream_batches import Batches
from pipeline.lake.lake import Lake
from pipeline.spark.failures import FAILURES
from pipeline.storage.filesystem import literal
from pipeline.storage.formats import DELTA, ICEBERG, format_of, settings
from pipeline.transforms.duplicates import PLACE
from pipeline.window import Window, make_window
from tests.pipeline.conftest import start_spark, stop_spark
from tests.support.messages.usage_events import HOUR_MS, make_event, write_lines

DAY_MS: Final = 24 * HOUR_MS
FIRST: Final = 1_767_225_600_000 - 1_767_182_400_000
"""2026-01-01, as `at`."""
OUT: Final = "lake, of [2] 'teams'"
FEW_TASKS: Final = {"spark.databricks.delta.snapshotPartitions": "1"}
"""Delta reads the log of a table with 50 tasks otherwise, each time."""
BOTH_DAYS: Final = [
    ("2026-01-01 01:00:00", 101),
    ("2026-01-01 07:00:00", 107),
    ("2026-01-02 01:00:00", 125),
    ("2026-01-02 07:00:00", 131),
]
"""The hours of the events, with their bytes."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lakes")


@pytest.fixture(scope="module")
def spark(folder: Path) -> Iterator[SparkSession]:
    """A session for tables of both formats. It needs settings that Spark takes only when a session starts."""
    stop_spark()
    yield start_spark({**FEW_TASKS, **settings((DELTA, ICEBERG), str(folder / ICEBERG / OUT))})
    stop_spark()


class Story:
    """One folder of tables in one format."""

    def __init__(self, spark: SparkSession, form: str, folder: Path) -> None:
        folder.mkdir()
        self.form = form
        self.folder = folder
        self.out = folder / OUT
        self.spark = spark
        self.lake = Lake(spark, str(self.out), form)

    def run(self, job: str, *options: object) -> Result:
        arguments = [job, "--out", self.out, "--format", self.form, *options]
        return CliRunner().invoke(main, [str(each) for each in arguments])

    def done(self, job: str, *options: object) -> str:
        result = self.run(job, *options)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.output

    def hours(self) -> list[tuple[str, int]]:
        """The hours of usage/ with their bytes, from a new reading of the table."""
        rows = self.table("usage").select(F.col("hour").cast("string"), "bytes_in").collect()
        return sorted(map(tuple, rows))

    def replace(self, hours: dict[datetime, int], start: str, end: str) -> list[date]:
        """Replace the window's part of usage/ by rows of these hours with these bytes; return the removed
        dates.
        """
        table = self.table("usage").drop("date")
        (like,) = table.take(1)
        rows = [(like.asDict() | {"hour": hour, "bytes_in": size}).values() for hour, size in hours.items()]
        made = self.spark.createDataFrame([tuple(row) for row in rows], table.schema)
        window = make_window(start, end)
        return self.lake.replace_dates(made, "usage", window, whole_days=False).removed

    def table(self, name: str) -> DataFrame:
        found = self.lake.read(name)
        assert found is not None
        return found


def other_jobs_keep_what_ingest_could_not_read(story: Story) -> None:
    """Also if ingest has found no event yet, so that the table has no file."""
    lines = write_lines(story.folder / "events.jsonl", ["bad"])
    story.done("ingest", "--events", lines)
    write_lines(lines, [make_event()])
    story.done("throttle", "--events", lines)
    (row,) = story.spark.read.parquet(literal(f"{story.out}/quarantine")).collect()
    assert row.raw == "bad"


def ingest_adds_nothing_twice(story: Story) -> None:
    events = [make_event(at=FIRST + hour * HOUR_MS, bytes_in=100 + hour) for hour in (1, 7, 25, 31)]
    lines = write_lines(story.folder / "events.jsonl", [*events, events[0]])
    assert "4 events added" in story.done("ingest", "--events", lines)
    assert format_of(story.spark, f"{story.out}/events") == story.form
    assert "0 events added" in story.done("ingest", "--events", lines)
    assert sorted(row.bytes_in for row in story.table("events").collect()) == [101, 107, 125, 131]


def runs_build_a_history(story: Story) -> None:
    """Of a date that the window has in part, the other hours stay. A date without rows goes."""
    events = story.out / "events"
    story.done("usage", "--events", events, "--from", "2026-01-01", "--to", "2026-01-02")
    assert story.hours() == BOTH_DAYS[:2]
    first, second = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))
    assert story.replace({second.replace(hour=2): 5}, "2026-01-02", "2026-01-03") == []
    assert story.replace({first.replace(hour=8): 9}, "2026-01-01T06:00", "2026-01-02") == []
    after = [BOTH_DAYS[0], ("2026-01-01 08:00:00", 9)]
    assert story.hours() == [*after, ("2026-01-02 02:00:00", 5)]
    assert story.replace({}, "2026-01-02", "2026-01-03") == [date(2026, 1, 2)]
    assert story.hours() == after
    story.done("usage", "--events", events)
    assert story.hours() == BOTH_DAYS


def a_write_that_fails_changes_nothing(story: Story) -> None:
    before = story.hours()
    rows = story.table("usage").drop("date")
    failing = rows.withColumn(
        "bytes_in", F.when(F.col("bytes_in") > 110, F.raise_error(F.lit("x"))).otherwise(1)
    )
    typed = failing.withColumn("bytes_in", F.col("bytes_in").cast("bigint"))
    for write in (
        lambda: story.lake.replace_dates(typed, "usage", make_window("2026-01-01", None), whole_days=False),
        lambda: story.lake.replace(typed, "usage"),
    ):
        with pytest.raises(FAILURES):
            write()
        assert story.hours() == before


def tables_without_dates_are_replaced(story: Story) -> None:
    prices = story.folder / "prices.yaml"
    prices.write_text("{currency: EUR, per_partition_hour: 1}")
    story.done("chargeback", "--events", story.out / "events", "--prices", prices)
    (bill,) = story.table("chargeback").collect()
    assert bill.amount == 4
    story.lake.replace(story.spark.createDataFrame([bill], story.table("chargeback").schema), "chargeback")
    assert story.table("chargeback").collect() == [bill]
    nothing = ("--from", "2030-01-01", "--to", "2030-01-02")
    story.done("throttle", "--events", story.out / "events", *nothing)
    assert story.table("throttle").count() == 0


def a_stream_appends_each_event_once(story: Story) -> None:
    """A batch that comes again adds nothing; one event of the second batch is late."""
    texts = [json.dumps(make_event(at=FIRST + hour * HOUR_MS, broker=9)) for hour in (40, 41)]
    late = json.dumps(make_event(at=FIRST, broker=9))
    for number, lines in ((0, texts), (0, texts), (1, [late])):
        rows = [(text, place) for place, text in enumerate(lines)]
        batches = Batches(story.lake, f"{story.out}/_checkpoint", Window(), HOUR_MS)
        batches.write(story.spark.createDataFrame(rows, f"raw string, {PLACE} bigint"), number)
    assert [story.table(name).where("broker = 9").count() for name in ("events", "late")] == [2, 1]


def compaction_keeps_the_events(story: Story) -> None:
    before = sorted(story.table("events").collect())
    story.done("ingest", "--events", story.folder / "events.jsonl", "--compact")
    assert sorted(story.table("events").collect()) == before


def another_format_is_rejected(story: Story) -> None:
    result = CliRunner().invoke(
        main, ["usage", "--events", str(story.folder / "events.jsonl"), "--out", str(story.out)]
    )
    assert (result.exit_code, "--format " + story.form in result.output) == (2, True), result.output
    assert len(story.hours()) == 4


def a_catalog_knows_the_table(story: Story) -> None:
    name = "default.usage_of_teams" if story.form == DELTA else "quota_lake.teams.usage"
    story.done("usage", "--events", story.out / "events", "--catalog-table", name)
    assert story.spark.table(name).count() == 4
    # The second write finds the table in the catalog.
    story.lake = Lake(story.spark, str(story.out), story.form, name)
    assert story.replace({}, "2026-01-02", "2026-01-03") == [date(2026, 1, 2)]
    assert story.spark.table(name).count() == 2
    story.lake = Lake(story.spark, str(story.out), story.form)


STORY: Final = (
    other_jobs_keep_what_ingest_could_not_read,
    ingest_adds_nothing_twice,
    runs_build_a_history,
    a_write_that_fails_changes_nothing,
    tables_without_dates_are_replaced,
    another_format_is_rejected,
    a_catalog_knows_the_table,
    compaction_keeps_the_events,
    a_stream_appends_each_event_once,
)


@pytest.mark.parametrize("form", [DELTA, ICEBERG])
def test_tables_of_a_lake(spark: SparkSession, folder: Path, form: str) -> None:
    story = Story(spark, form, folder / form)
    for part in STORY:
        print(part.__name__)
        part(story)
