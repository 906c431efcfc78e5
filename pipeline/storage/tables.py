"""Tables: Parquet folders under --out."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Final

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F

from pipeline.errors import InputError
from pipeline.schema import EVENT, names
from pipeline.storage.arrow_files import Piece, period_of, pieces
from pipeline.storage.filesystem import FilePath, literal
from pipeline.storage.locks import locked
from pipeline.storage.observed import Observed
from pipeline.storage.sources import KAFKA, LINES, Source, is_parquet, read_checked
from pipeline.storage.summed_files import summed_files
from pipeline.storage.swaps import WHOLE, Swap
from pipeline.transforms.arrays.parcels import BAD, END, FIRST, READ
from pipeline.transforms.arrays.summing import Summing, summed, table_of
from pipeline.transforms.duplicates import (
    CONTRADICTED,
    IS_KNOWN,
    contradictions,
    deduplicate,
)
from pipeline.transforms.events import bad, good, is_within, span, within
from pipeline.window import Window, previous

QUARANTINE_TABLE: Final = "quarantine"
EVENTS_TABLE: Final = "events"
LATE_TABLE: Final = "late"
"""Events that a stream received too late for `events/`."""
_ATTEMPT: Final = "mapreduce.job.application.attempt.id"
_ATTEMPT_BITS: Final = 31
"""Hadoop reads the number as a positive int."""
_INGESTED: Final = "_ingested"
"""The file that marks the folder of `events/` if the table has no file in it: a table without rows, or one of
a catalog.
"""


def write_table(table: DataFrame, out: str, name: str) -> str:
    """Write the table, replacing an existing one once the new one is whole; return its folder."""
    folder = FilePath(table.sparkSession, table_folder(out, name))
    aside = folder.beside("new")
    swap = Swap(folder, aside)
    swap.finish()
    try:
        table.write.mode("overwrite").parquet(str(aside))
    except BaseException:
        aside.delete()
        raise
    swap.run([WHOLE])
    return str(folder)


def append_parquet(rows: DataFrame, out: str, name: str) -> str:
    """Append rows to a table by date; return its folder."""
    folder = table_folder(out, name)
    _appending(rows).partitionBy("date").parquet(folder)
    return folder


def quarantine(rows: DataFrame, out: str) -> None:
    """Append rows to the quarantine table, unless it has them, when no other run writes it: the end of a
    write removes what others have written to `_temporary`.
    """
    with locked(out, QUARANTINE_TABLE, wait=True):
        _add_distinct(rows, table_folder(out, QUARANTINE_TABLE))


def _add_distinct(rows: DataFrame, folder: str) -> None:
    """Append the rows that the table lacks, each once."""
    fresh = rows.distinct()
    if has_rows(rows.sparkSession, folder):
        known = rows.sparkSession.read.parquet(literal(folder))
        fresh = fresh.join(known, rows.columns, "left_anti")
    _appending(fresh).parquet(folder)


def _appending(rows: DataFrame) -> DataFrameWriter:
    """Return a writer that adds to a table no files of other runs.

    At the end of a write, Spark moves all files to the table that are in `_temporary/ATTEMPT`. With ATTEMPT's
    default, 0, a write would also add the files that a killed run has left there.
    """
    return rows.write.mode("append").option(_ATTEMPT, random.getrandbits(_ATTEMPT_BITS))


def table_folder(out: str, name: str) -> str:
    """The folder of a table."""
    return f"{out.rstrip('/')}/{name}"


def events_folder(out: str) -> str:
    """The folder that `ingest` writes."""
    return table_folder(out, EVENTS_TABLE)


def stream_note(out: str) -> str:
    """The file that marks the table of events as written by a stream."""
    return f"{events_folder(out)}/_stream"


def is_streamed(spark: SparkSession, out: str) -> bool:
    """Whether a stream writes the table of events."""
    return FilePath(spark, stream_note(out)).exists() or has_sink_log(spark, events_folder(out))


def has_sink_log(spark: SparkSession, folder: str) -> bool:
    """Whether the table consists of the files in the list of Spark's file sink, which no job extends."""
    return FilePath(spark, f"{folder}/_spark_metadata").exists()


def is_ingested(spark: SparkSession, out: str) -> bool:
    """Whether `ingest` writes to the folder, also if it has found no event yet."""
    folder = events_folder(out)
    return (
        has_rows(spark, folder)
        or is_streamed(spark, out)
        or FilePath(spark, f"{folder}/{_INGESTED}").exists()
    )


def mark_ingested(spark: SparkSession, out: str) -> None:
    """Have is_ingested() be true for the folder."""
    if not is_ingested(spark, out):
        FilePath(spark, f"{events_folder(out)}/{_INGESTED}").create("")


def has_rows(spark: SparkSession, folder: str) -> bool:
    """Whether the folder has a Parquet table."""
    return FilePath(spark, folder).has_files(".parquet")


def all_events(events: DataFrame) -> DataFrame:
    """Select every event."""
    return events


@dataclass(frozen=True, slots=True)
class Quality:
    """How many lines or rows were read, how many of them are not events, and how many contradict another
    event.
    """

    read: int
    bad: int
    contradicting: int
    late: int = 0
    """Events of the window in `late/` that do not count."""
    late_before: int = 0
    """Events in `late/` of the period before the window: that period's tables may lack them."""


def late_source(spark: SparkSession, source: Source) -> Source | None:
    """Return the table `late/` beside the table `events/`; None if there is none, or the source is not
    `events/`.
    """
    if not _is_events(source):
        return None
    folder = table_folder(source.place.rstrip("/").removesuffix(f"/{EVENTS_TABLE}"), LATE_TABLE)
    return replace(source, place=folder) if has_rows(spark, folder) else None


def _is_events(source: Source) -> bool:
    return source.kind not in (KAFKA, LINES) and source.place.rstrip("/").endswith(f"/{EVENTS_TABLE}")


def _late_counts(spark: SparkSession, late: Source, window: Window, *, with_late: bool) -> DataFrame:
    """Return one row: `late` and `late_before` of Quality."""
    before = previous(window)
    read = Window(before.start_ms if before else window.start_ms, window.end_ms)
    events = good(read_checked(spark, late, read))
    is_left = F.lit(False) if with_late else is_within(window)
    return events.agg(F.count_if(is_left), F.count_if(is_within(before) if before else F.lit(False)))


class Events:
    """The events of a source, and its lines or rows that do not count. `with_late`: the events in the table
    `late/` beside it count, too.
    """

    def __init__(
        self, spark: SparkSession, source: Source, window: Window, *, with_late: bool = False
    ) -> None:
        if with_late and not _is_events(source):
            raise InputError("--with-late requires --events FOLDER/events, the table that a stream writes")
        late = late_source(spark, source)
        self._spark: Final = spark
        self._sources: Final = [source] if late is None or not with_late else [source, late]
        self._window: Final = window
        self._late: Final = None if late is None else _late_counts(spark, late, window, with_late=with_late)
        self._known_period: Window | None = None
        """The period of the result of sums(), if the statistics of files tell it."""
        self._seen: Observed | None = None
        self._doubted: Observed | None = None
        """Counts the contradicted events, or rows with one, in the result of events() or sums()."""
        self._some: Callable[[DataFrame], DataFrame] = all_events
        """Selects the events that are compared for duplicates."""
        self._known: DataFrame | None = None
        """The table whose events events() has excluded."""

    @cached_property
    def _checked(self) -> DataFrame:
        """What Spark reads, with the reasons why some rows are no events."""
        return reduce(
            DataFrame.unionByName,
            [read_checked(self._spark, source, self._window) for source in self._sources],
        )

    def events(self, known: DataFrame | None = None) -> DataFrame:
        """Return each event of the window once, without those that the table `known` has. The first action on
        the result also counts what is read.
        """
        self._some, self._known, self._known_period = all_events, known, None
        self._seen = self._observed()
        unique = deduplicate(self._selected(self._seen.table), known)
        self._doubted = Observed(unique, contradicted=F.count_if(CONTRADICTED))
        found = self._doubted.table
        return (found if known is None else found.where(~F.col(IS_KNOWN))).select(*names(EVENT))

    def sums(self, summing: Summing, some: Callable[[DataFrame], DataFrame] = all_events) -> DataFrame:
        """Return a table of sums over the events of the window, each once. The first action on the result
        also counts what is read. `some` selects the same events as `summing.are_wanted`: an event and its
        duplicate alike.
        """
        self._some, self._known = some, None
        found = self.pieces()
        self._known_period = period_of(found, self._window) if found else None
        if found:
            table = summed_files(self._spark, found, summing, self._window)
        else:
            table = summed(self._checked, summing, self._window)
        self._seen = self._doubted = Observed(
            table,
            read=F.coalesce(F.sum(READ), F.lit(0)),
            bad=F.coalesce(F.sum(BAD), F.lit(0)),
            first=F.min(FIRST),
            end=F.max(END),
            contradicted=F.count_if(CONTRADICTED),
        )
        return table_of(self._seen.table, summing)

    def pieces(self) -> list[Piece]:
        """Return the pieces of Parquet files that tasks read with Arrow; none if Spark has to read them."""
        found: list[Piece] = []
        for source in self._sources:
            if not is_parquet(self._spark, source):
                return []
            some = pieces(self._spark, source, self._window)
            if some is None:
                return []
            found += some
        return found

    def _selected(self, checked: DataFrame) -> DataFrame:
        """Return the events that are compared for duplicates."""
        return self._some(within(good(checked), self._window))

    def _observed(self) -> Observed:
        first, end = span(self._window)
        return Observed(self._checked, read=F.count(F.lit(1)), bad=F.count("reason"), first=first, end=end)

    def known_period(self) -> Window | None:
        """Return what period() does, if it is known before the action."""
        if self._window.start_ms is not None and self._window.end_ms is not None:
            return self._window
        return self._known_period

    def period(self) -> Window:
        """Return the window; an end that it lacks is that of the events. Call it after an action on events()
        or sums(), unless known_period() knows it.
        """
        known = self.known_period()
        if known is not None:
            return known
        assert self._seen is not None
        seen, start, end = self._seen.get(), self._window.start_ms, self._window.end_ms
        return Window(seen["first"] if start is None else start, seen["end"] if end is None else end)

    def begin_ms(self) -> int | None:
        """Return the start of the first interval in the window; None if there are no events. Call it after an
        action on events().
        """
        assert self._seen is not None
        found: int | None = self._seen.get()["first"]
        return found

    def invalid(self) -> DataFrame:
        """Return `raw, reason` of the lines or rows that are not events.

        They come from a table with a counter. Spark does not move a condition below a counter. It would
        otherwise move this one below the parser, and parse a line for each use of a field in it.
        """
        return bad(self._observed().table)

    def quarantine(self, out: str, *, add: bool = False) -> Quality:
        """Write what does not count to the quarantine table; return the counts. Call it after an action on
        events().

        The table holds the rows of this run, and is removed if there are none. With `add`, or in a folder
        that `ingest` writes, the rows are appended instead, each (raw, reason) once: such a folder may hold
        the only copy of the text.
        """
        assert self._seen is not None
        assert self._doubted is not None
        seen = self._seen.get()
        found = self.invalid() if seen["bad"] else None
        others: Observed | None = None
        if self._doubted.get()["contradicted"]:
            events = self._selected(self._observed().table)
            others = Observed(contradictions(events, self._known), rows=F.count(F.lit(1)))
            found = others.table if found is None else found.unionByName(others.table)
        folder = table_folder(out, QUARANTINE_TABLE)
        if found is not None:
            with locked(out, QUARANTINE_TABLE, wait=True):
                if add or is_ingested(self._spark, out):
                    _add_distinct(found, folder)
                else:
                    write_table(found, out, QUARANTINE_TABLE)
        elif not add and not is_ingested(self._spark, out):
            FilePath(self._spark, folder).delete()
        contradicting = 0 if others is None else others.get()["rows"]
        late = (0, 0) if self._late is None else self._late.collect()[0]
        return Quality(seen["read"], seen["bad"], contradicting, *late)
