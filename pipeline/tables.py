"""Tables as Parquet folders below --out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from pipeline.errors import PipelineError
from pipeline.sources import Source, read_checked
from pipeline.transforms.events import bad, deduplicate, good, with_date, within
from pipeline.window import Window

QUARANTINE_TABLE: Final = "quarantine"
EVENTS_TABLE: Final = "events"


def write_table(table: DataFrame, out: str, name: str) -> str:
    """Writes the table anew, a former one of this name is replaced; returns its folder."""
    folder = f"{out.rstrip('/')}/{name}"
    table.write.mode("overwrite").parquet(folder)
    return folder


def append_events(events: DataFrame, out: str) -> int:
    """Adds events to the table, by date, and returns how many."""
    written = Observation()
    table = with_date(events).observe(written, F.count(F.lit(1)).alias("rows"))
    table.write.mode("append").partitionBy("date").parquet(events_folder(out))
    return int(written.get["rows"])


def events_folder(out: str) -> str:
    """Where `ingest` keeps events."""
    return f"{out.rstrip('/')}/{EVENTS_TABLE}"


def is_streamed(folder: str) -> bool:
    """Whether a stream writes here: its own list of files is then the table, and other files are no part."""
    return Path(folder, "_spark_metadata").is_dir()


def has_rows(folder: str) -> bool:
    """Whether there is a table."""
    return next(Path(folder).rglob("*.parquet"), None) is not None


def all_events(events: DataFrame) -> DataFrame:
    """No selection."""
    return events


@dataclass(frozen=True, slots=True)
class Quality:
    """How much of what was read are events of the window asked for."""

    read: int
    bad: int


class Events:
    """A source's events, and those lines or rows of it that are none."""

    def __init__(self, spark: SparkSession, source: Source, window: Window) -> None:
        self._checked: Final = read_checked(spark, source)
        self._seen = Observation()
        self._window: Final = window

    def events(self, some: Callable[[DataFrame], DataFrame] = all_events) -> DataFrame:
        """Each event of the window once, or some of them: whatever says the same of an event and of its
        duplicate, so that fewer have to be compared. The first action on this also counts what is read.
        """
        self._seen = Observation()
        counted = self._checked.observe(
            self._seen, F.count(F.lit(1)).alias("read"), F.count("reason").alias("bad")
        )
        return deduplicate(some(within(good(counted), self._window)))

    def quarantine(self, out: str, *, add: bool = False) -> Quality:
        """After an action on events(): writes what is none of them, and says how many they are.

        The table is then this run's, and gone where there is nothing for it. `add`: it is added to what the
        table has already, where the same text with the same reason is once; so it is in a folder that
        `ingest` keeps events in, whose texts may be nowhere else.
        """
        seen = self._seen.get
        quality = Quality(seen["read"], seen["bad"])
        folder = f"{out.rstrip('/')}/{QUARANTINE_TABLE}"
        if is_streamed(folder):
            if quality.bad:
                raise PipelineError(
                    f"{quality.bad:,} of what was read are no events, and a stream keeps such in {folder}: "
                    "give another --out"
                )
            return quality
        found = bad(self._checked)
        add = add or has_rows(events_folder(out))
        if not quality.bad:
            if not add:
                _remove_table(found.sparkSession, folder)
        elif add and has_rows(folder):
            known = found.sparkSession.read.parquet(folder)
            found.distinct().join(known, ["raw", "reason"], "left_anti").write.mode("append").parquet(folder)
        else:
            write_table(found.distinct() if add else found, out, QUARANTINE_TABLE)
        return quality


def _remove_table(spark: SparkSession, folder: str) -> None:
    """Wherever Spark writes."""
    context = spark.sparkContext
    assert context._jvm is not None
    path = context._jvm.org.apache.hadoop.fs.Path(folder)
    path.getFileSystem(context._jsc.hadoopConfiguration()).delete(path, True)
