"""Writes a stream's batches to `events/`, `late/` and `quarantine/`, so that a repeated batch adds nothing.

A batch may come again: Spark repeats the batch that a stopped run had begun, and --recover reads a topic from
its beginning. The tables themselves say which events they have, so no state can be lost.
"""

import json
import time
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from pipeline.lake.lake import Lake
from pipeline.schema import EVENT, names
from pipeline.storage.filesystem import FilePath
from pipeline.storage.observed import Observed
from pipeline.storage.tables import EVENTS_TABLE, LATE_TABLE, quarantine
from pipeline.transforms.duplicates import CONTRADICTED, IS_KNOWN, contradictions, deduplicate
from pipeline.transforms.events import bad, checked_lines, good, is_within, with_date, within
from pipeline.window import Window

_ROWS_PER_FILE: Final = 1_000_000
"""A batch is written by one task for each of so many lines, so that it adds few files."""
_START: Final = "interval_start_ms"
_IS_LATE: Final = "is_late"


@dataclass(frozen=True, slots=True)
class Sums:
    """What the batches of a run contained."""

    read: int = 0
    bad: int = 0
    late: int = 0
    contradicting: int = 0

    def plus(self, other: "Sums") -> "Sums":
        """Return the sums of both."""
        return Sums(
            self.read + other.read,
            self.bad + other.bad,
            self.late + other.late,
            self.contradicting + other.contradicting,
        )


class Batches:
    """Writes batches, one after the other. An event is late if its interval began more than `late_ms`
    before the newest interval of all earlier batches.
    """

    def __init__(self, lake: Lake, position: str, window: Window, late_ms: int) -> None:
        self._lake: Final = lake
        self._note: Final = f"{position}/newest.json"
        """The file with the number of the last batch, and the newest start before it."""
        self._window: Final = window
        self._late_ms: Final = late_ms
        self._newest: int | None = None
        """The newest start of all earlier batches, in ms; None: not known yet, or there are none."""
        self.sums = Sums()

    def write(self, records: DataFrame, number: int) -> Sums:
        """Write one batch of lines; return what it contained."""
        checked = checked_lines(records).persist()
        try:
            found = self._write(checked, number)
        finally:
            checked.unpersist()
        self.sums = self.sums.plus(found)
        return found

    def _write(self, checked: DataFrame, number: int) -> Sums:
        """Write one batch of checked lines; return what it contained."""
        spark = checked.sparkSession
        found = _only(self._contents(checked))
        newest = self._newest_before(spark, number)
        late = contradicting = 0
        if found.bad:
            quarantine(bad(checked), self._lake.out)
        if found.first is not None:
            valid = within(good(checked), self._window)
            known = self._known(spark, found)
            unique = deduplicate(valid, known).withColumn(_IS_LATE, self._is_late(newest)).persist()
            try:
                counts = _only(_kinds(unique))
                if counts.contradicted:
                    contradicting = self._quarantine_contradictions(valid, known)
                self._append(unique, counts, found.read // _ROWS_PER_FILE + 1)
            finally:
                unique.unpersist()
            late = counts.late
            # An event of the future makes no other event late.
            last = min(found.last, round(time.time() * 1000))
            self._newest = last if newest is None else max(newest, last)
        return Sums(found.read, found.bad, late, contradicting)

    def _contents(self, checked: DataFrame) -> DataFrame:
        """Return one row: the numbers of lines and of invalid ones, and the times in the window."""
        in_window = F.when(F.col("reason").isNull() & is_within(self._window), F.col(_START))
        return checked.agg(
            F.count(F.lit(1)).alias("read"),
            F.count("reason").alias("bad"),
            F.min(in_window).alias("first"),
            F.max(in_window).alias("last"),
        )

    def _is_late(self, newest: int | None) -> Column:
        return F.lit(False) if newest is None else F.col(_START) < newest - self._late_ms

    def _quarantine_contradictions(self, valid: DataFrame, known: DataFrame) -> int:
        found = Observed(contradictions(valid, known), rows=F.count(F.lit(1)))
        quarantine(found.table, self._lake.out)
        rows: int = found.get()["rows"]
        return rows

    def _append(self, unique: DataFrame, counts: Row, files: int) -> None:
        """Append the new events that are late, then the others."""
        is_late = F.col(_IS_LATE)
        for name, count, some in (
            (LATE_TABLE, counts.late, is_late),
            (EVENTS_TABLE, counts.on_time, ~is_late),
        ):
            if count:
                self._lake.append(with_date(unique.where(~F.col(IS_KNOWN) & some)), name, files)

    def _known(self, spark: SparkSession, span: Row) -> DataFrame:
        """Return the events that the tables have. The times let Spark skip most files."""
        times = F.col(_START).between(span.first, span.last)
        days = F.col("date").between(_day(span.first), _day(span.last))
        known = spark.createDataFrame([], EVENT)
        for name in (EVENTS_TABLE, LATE_TABLE):
            table = self._lake.read(name)
            if table is not None:
                known = known.unionByName(table.where(days & times).select(*names(EVENT)))
        return known

    def _newest_before(self, spark: SparkSession, number: int) -> int | None:
        """Return the newest start of all batches before this one; None: there are none.

        A repeated batch gets the same value, although its first attempt may have written events.
        """
        note = FilePath(spark, self._note)
        note.repair()
        known: dict[str, Any] = json.loads(note.read_text()) if note.exists() else {}
        if known.get("batch") == number:
            newest: int | None = known["newest"]
            return newest
        if self._newest is None:
            self._newest = self._newest_stored()
        note.write_text(json.dumps({"batch": number, "newest": self._newest}))
        return self._newest

    def _newest_stored(self) -> int | None:
        """Return the newest start in the table of events, at most now, in ms; None if there are no events."""
        table = self._lake.read(EVENTS_TABLE)
        if table is None:
            return None
        day = _only(table.agg(F.max("date").alias("last"))).last
        newest = _only(table.where(F.col("date") == day).agg(F.max(_START).alias("last"))).last
        return None if newest is None else min(newest, round(time.time() * 1000))


def _kinds(unique: DataFrame) -> DataFrame:
    """Return one row: how many events contradict others, and how many new ones are late and on time."""
    is_new, is_late = ~F.col(IS_KNOWN), F.col(_IS_LATE)
    return unique.agg(
        F.count_if(CONTRADICTED).alias("contradicted"),
        F.count_if(is_new & is_late).alias("late"),
        F.count_if(is_new & ~is_late).alias("on_time"),
    )


def _day(start_ms: int) -> Column:
    return F.timestamp_millis(F.lit(start_ms)).cast("date")


def _only(table: DataFrame) -> Row:
    return table.collect()[0]
