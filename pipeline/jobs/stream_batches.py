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

from pipeline.filesystem import FilePath
from pipeline.lake.lake import Lake
from pipeline.schema import EVENT, names
from pipeline.tables import EVENTS_TABLE, LATE_TABLE, QUARANTINE_TABLE, add_distinct, table_folder
from pipeline.transforms.duplicates import CONTRADICTED, IS_KNOWN, contradictions, deduplicate
from pipeline.transforms.events import bad, checked_lines, good, with_date, within
from pipeline.window import Window

_ROWS_PER_FILE: Final = 1_000_000
_START: Final = "interval_start_ms"


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
        self._window: Final = window
        self._late_ms: Final = late_ms
        self._newest: int | None = None
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
        spark = checked.sparkSession
        valid = within(good(checked), self._window)
        counts = _only(checked.agg(F.count(F.lit(1)).alias("read"), F.count("reason").alias("bad")))
        newest = self._newest_before(spark, number)
        span = _only(valid.agg(F.min(_START).alias("first"), F.max(_START).alias("last")))
        late = contradicting = 0
        if counts.bad:
            add_distinct(bad(checked), table_folder(self._lake.out, QUARANTINE_TABLE))
        if span.first is not None:
            known = self._known(spark, span)
            unique = deduplicate(valid, known).persist()
            try:
                contradicting = self._quarantine_contradictions(valid, known, unique)
                late = self._append(unique.where(~F.col(IS_KNOWN)), newest, counts.read)
            finally:
                unique.unpersist()
            # An event of the future makes no other event late.
            last = min(span.last, round(time.time() * 1000))
            self._newest = last if newest is None else max(newest, last)
        return Sums(counts.read, counts.bad, late, contradicting)

    def _quarantine_contradictions(self, valid: DataFrame, known: DataFrame, unique: DataFrame) -> int:
        if unique.where(CONTRADICTED).isEmpty():
            return 0
        found = contradictions(valid, known)
        add_distinct(found, table_folder(self._lake.out, QUARANTINE_TABLE))
        return found.count()

    def _append(self, fresh: DataFrame, newest: int | None, read: int) -> int:
        """Append the late events, then the others; return the number of late ones."""
        files = read // _ROWS_PER_FILE + 1
        is_late = F.lit(False) if newest is None else F.col(_START) < newest - self._late_ms
        late = 0
        for name, some in ((LATE_TABLE, is_late), (EVENTS_TABLE, ~is_late)):
            rows = fresh.where(some)
            count = rows.count()
            if count:
                self._lake.append(with_date(rows), name, files)
            late += count if name == LATE_TABLE else 0
        return late

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
        table = self._lake.read(EVENTS_TABLE)
        if table is None:
            return None
        day = _only(table.agg(F.max("date").alias("last"))).last
        newest: int = _only(table.where(F.col("date") == day).agg(F.max(_START).alias("last"))).last
        return min(newest, round(time.time() * 1000))


def _day(start_ms: int) -> Column:
    return F.timestamp_millis(F.lit(start_ms)).cast("date")


def _only(table: DataFrame) -> Row:
    return table.collect()[0]
