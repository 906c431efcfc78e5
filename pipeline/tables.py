"""Tables: Parquet folders under --out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.errors import PipelineError
from pipeline.observed import Observed
from pipeline.sources import Source, read_checked
from pipeline.transforms.events import bad, deduplicate, good, with_date, within
from pipeline.window import Window

QUARANTINE_TABLE: Final = "quarantine"
EVENTS_TABLE: Final = "events"


def write_table(table: DataFrame, out: str, name: str) -> str:
    """Write the table, replacing an existing one; return its folder."""
    folder = f"{out.rstrip('/')}/{name}"
    table.write.mode("overwrite").parquet(folder)
    return folder


def append_events(events: DataFrame, out: str) -> int:
    """Append events to the table, by date; return their number."""
    added = Observed(with_date(events), rows=F.count(F.lit(1)))
    added.table.write.mode("append").partitionBy("date").parquet(events_folder(out))
    return added.get()["rows"]


def events_folder(out: str) -> str:
    """The folder that `ingest` writes."""
    return f"{out.rstrip('/')}/{EVENTS_TABLE}"


def is_streamed(folder: str) -> bool:
    """Whether a stream writes this folder: the table then consists of the files in the stream's own list."""
    return Path(folder, "_spark_metadata").is_dir()


def has_rows(folder: str) -> bool:
    """Whether the folder has a table."""
    return next(Path(folder).rglob("*.parquet"), None) is not None


def all_events(events: DataFrame) -> DataFrame:
    """Select every event."""
    return events


@dataclass(frozen=True, slots=True)
class Quality:
    """How many lines or rows were read, and how many of them are not events."""

    read: int
    bad: int


class Events:
    """The events of a source, and its lines or rows that are not events."""

    def __init__(self, spark: SparkSession, source: Source, window: Window) -> None:
        self._checked: Final = read_checked(spark, source)
        self._seen = self._observed()
        self._window: Final = window

    def events(self, some: Callable[[DataFrame], DataFrame] = all_events) -> DataFrame:
        """Return each event of the window once. The first action on the result also counts what is read.

        `some` selects events before duplicates are removed, so that fewer are compared; it must select an
        event and its duplicate alike.
        """
        self._seen = self._observed()
        return deduplicate(some(within(good(self._seen.table), self._window)))

    def _observed(self) -> Observed:
        return Observed(self._checked, read=F.count(F.lit(1)), bad=F.count("reason"))

    def quarantine(self, out: str, *, add: bool = False) -> Quality:
        """Write what is not an event to the quarantine table; return the counts. Call it after an action on
        events().

        The table holds the rows of this run, and is removed if there are none. With `add`, or in a folder
        that `ingest` writes, the rows are appended instead, each (raw, reason) once: such a folder may hold
        the only copy of the text.
        """
        seen = self._seen.get()
        quality = Quality(seen["read"], seen["bad"])
        folder = f"{out.rstrip('/')}/{QUARANTINE_TABLE}"
        if is_streamed(folder):
            if quality.bad:
                raise PipelineError(
                    f"{quality.bad:,} rows are not events, and a stream writes its own in {folder}: "
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
    """Remove a table from any file system that Spark writes."""
    context = spark.sparkContext
    assert context._jvm is not None
    path = context._jvm.org.apache.hadoop.fs.Path(folder)
    path.getFileSystem(context._jsc.hadoopConfiguration()).delete(path, True)
