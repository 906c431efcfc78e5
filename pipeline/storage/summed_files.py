"""Sums the events of local Parquet files in Spark's tasks.

If the statistics of the row groups tell that these follow each other in time, each task reads a part of time,
and no event moves between tasks. Otherwise Spark shuffles the events.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from pipeline.storage.arrow_files import Piece, has_short_columns, read_columns, read_positive, read_tables
from pipeline.transforms.arrays.checked import checked
from pipeline.transforms.arrays.parcels import PARCEL, Packing, pack
from pipeline.transforms.arrays.rows import Rows
from pipeline.transforms.arrays.summing import Summing, packing, summed_parcels, sums_of
from pipeline.transforms.arrays.sweep import Sweep
from pipeline.transforms.arrays.valid import are_events
from pipeline.transforms.duplicates import ORDER
from pipeline.transforms.events import EARLIEST_START_MS, latest_ms
from pipeline.window import Window

_ROWS: Final = 500_000
"""The fewest rows of a task that packs parcels, if there is more than one."""
_SLICE_ROWS: Final = 10_000_000
"""The most rows of a task that reads a part of time, if there are more tasks than cores."""
_MOST_WAITING: Final = 6_000_000
"""Rows that may wait in a task, with about 60 bytes each."""


@dataclass(frozen=True, slots=True)
class Spanned:
    """A piece, and the time of its events."""

    piece: Piece
    starts: tuple[int, int]
    """The lowest and the highest time at which an event in it may begin."""
    is_counted: bool = True
    """Whether the task counts the rows. Another task counts them if both read the piece."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What a task reads: the pieces with events of these periods, in the order of their first events."""

    periods: range
    pieces: Sequence[Spanned]


def summed_files(spark: SparkSession, found: Sequence[Piece], summing: Summing, window: Window) -> DataFrame:
    """Return `summing.result` of the events of the window in these pieces."""
    cores, latest = spark.sparkContext.defaultParallelism, latest_ms()
    how = packing(spark, summing, window, partial(are_events, latest_ms=latest))
    slices = slices_of(found, cores, how.period_ms, latest)
    if slices is not None:
        swept = partial(_swept, slices=slices, packing=how, summing=summing, latest=latest)
        return _numbers(spark, len(slices)).mapInArrow(swept, summing.result)
    tasks = tasks_of(found, cores)
    packed = _numbers(spark, len(tasks)).mapInArrow(partial(_packed, tasks=tasks, packing=how), PARCEL)
    return summed_parcels(packed, summing)


def _numbers(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(0, count, 1, count)


def tasks_of(found: Sequence[Piece], least: int) -> list[list[Piece]]:
    """Divide the pieces among tasks: as many as there are cores, or more with _ROWS each."""
    rows = sum(piece.rows for piece in found)
    count = max(1, min(len(found), max(least, rows // _ROWS)))
    tasks: list[list[Piece]] = [[] for _ in range(count)]
    sizes = [0] * count
    for piece in sorted(found, key=lambda piece: -piece.rows):
        smallest = sizes.index(min(sizes))
        tasks[smallest].append(piece)
        sizes[smallest] += piece.rows
    return tasks


def slices_of(found: Sequence[Piece], least: int, period_ms: int, latest: int) -> list[Slice] | None:
    """Divide the pieces by time among tasks: as many as there are cores, or more with _SLICE_ROWS each.

    None if the statistics lack the time of some, or too many rows would wait in a task.
    """
    spanned: list[Spanned] = []
    for piece in found:
        if piece.starts is None:
            return None
        first, last = (min(max(end, EARLIEST_START_MS), latest) for end in piece.starts)
        spanned.append(Spanned(piece, (first, last)))
    spanned.sort(key=lambda each: _periods(each, period_ms).start)
    rows = sum(piece.rows for piece in found)
    bounds = _bounds(spanned, max(least, rows // _SLICE_ROWS), period_ms)
    slices = []
    for periods in map(range, bounds[:-1], bounds[1:]):
        pieces = []
        for each in spanned:
            mine = _periods(each, period_ms)
            if mine.start < periods.stop and mine.stop > periods.start:
                pieces.append(replace(each, is_counted=mine.start >= periods.start))
        slices.append(Slice(periods, pieces))
    most = max(_most_waiting(each.pieces, period_ms) for each in slices)
    return slices if most <= _MOST_WAITING else None


def _periods(each: Spanned, period_ms: int) -> range:
    """The numbers of the periods between the piece's first and last event."""
    first, last = each.starts
    return range(first // period_ms, last // period_ms + 1)


def _bounds(spanned: Sequence[Spanned], tasks: int, period_ms: int) -> list[int]:
    """Return the periods at which tasks begin, and the last end. The rows of a piece are taken to be spread
    evenly over its time.
    """
    of_pieces = [_periods(each, period_ms) for each in spanned]
    first, end = min(each.start for each in of_pieces), max(each.stop for each in of_pieces)
    changes = np.zeros(end - first + 1)
    for each, periods in zip(spanned, of_pieces, strict=True):
        changes[periods.start - first] += each.piece.rows / len(periods)
        changes[periods.stop - first] -= each.piece.rows / len(periods)
    rows = np.cumsum(np.cumsum(changes)[:-1])
    targets = rows[-1] * np.arange(1, tasks) / tasks
    inner = {first + int(np.searchsorted(rows, target)) + 1 for target in targets}
    return sorted({first, end} | {each for each in inner if first < each < end})


def _most_waiting(pieces: Sequence[Spanned], period_ms: int) -> int:
    """Return how many rows wait at most, if all of a piece wait until the last one may be complete."""
    most, waiting = 0, list[tuple[int, int]]()
    for each in pieces:
        periods = _periods(each, period_ms)
        waiting = [(stop, rows) for stop, rows in waiting if stop > periods.start]
        waiting.append((periods.stop, each.piece.rows))
        most = max(most, sum(rows for _, rows in waiting))
    return most


def _packed(numbers: Iterable[Any], tasks: Sequence[Sequence[Piece]], packing: Packing) -> Iterator[Any]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for piece in tasks[number]:
                for table in read_tables(piece):
                    yield pack(table, packing)


def _swept(
    numbers: Iterable[Any], slices: Sequence[Slice], packing: Packing, summing: Summing, latest: int
) -> Iterator[Any]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            sweep = Sweep(packing, slices[number].periods)
            complete = _complete(slices[number], sweep, packing, summing, latest)
            yield from sums_of(complete, sweep.counted, summing)


def _complete(some: Slice, sweep: Sweep, packing: Packing, summing: Summing, latest: int) -> Iterator[Rows]:
    """Yield the events of whole periods."""
    for each in some.pieces:
        yield from sweep.complete(_periods(each, packing.period_ms).start)
        try:
            if not _skimmed(each, sweep, packing.window, summing.positive) and not _taken(
                each, sweep, latest
            ):
                for table in read_tables(each.piece):
                    sweep.add(table, each.starts, is_counted=each.is_counted)
        except ValueError as error:
            raise OSError(f"{error} in file {each.piece.file}") from error
    yield from sweep.complete(None)


def _taken(each: Spanned, sweep: Sweep, latest: int) -> bool:
    """Read the columns one by one, if all rows turn out to be events."""
    piece = each.piece
    rows = checked(read_columns(piece), latest) if has_short_columns(piece) else None
    if rows is None:
        return False
    order = np.arange(piece.place + piece.first, piece.place + piece.first + len(rows))
    rows = Rows({**rows.numbers, ORDER: order}, rows.texts)
    sweep.add_checked(rows, each.starts, is_counted=each.is_counted)
    return True


def _skimmed(each: Spanned, sweep: Sweep, window: Window, positive: Sequence[str]) -> bool:
    """Read only the rows that are wanted, if the statistics prove that all are events of the window."""
    length, (first, last) = each.piece.length_ms, each.starts
    start, end = window.start_ms, window.end_ms
    is_within = (start is None or first >= start) and (end is None or last < end)
    if not positive or length is None or not is_within:
        return False
    table = read_positive(each.piece, positive)
    if table is None:
        return False
    if each.is_counted:
        sweep.count(each.piece.rows, each.starts, length)
    if len(table):
        sweep.add(table, each.starts, is_counted=False)
    return True
