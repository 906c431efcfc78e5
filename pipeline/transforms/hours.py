"""Sums and rates of each hour, or day, of each tenant on each partition at each broker.

Spark brings the events of an hour together, and sorts them by one number. The rest is done in arrays, with
numpy: in Spark's plans, each of the three groups (an event and its duplicates, an interval, an hour) is an
aggregate of sorted rows, for which Spark generates no code of a whole stage, and which takes several times as
long.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DoubleType, LongType, StructField, StructType

from pipeline.schema import COUNTS, EVENT
from pipeline.transforms.duplicates import (
    CONTRADICTED,
    DIGEST,
    EVENT_HOUR,
    HOURLY,
    HOURLY_HASH,
    ORDER,
    ordered,
    with_hour,
)
from pipeline.transforms.runs import Ints, begins_of, combined, percentile, totals

HOUR: Final = "hour"
DAY: Final = "day"
HOURS_PER_DAY: Final = 24
PERCENTS: Final = (95, 99)
WAYS: Final = ("bytes_in", "bytes_out")
_KEYS: Final = (*HOURLY, "broker")
"""The columns by which the sums group."""
_START: Final = "interval_start_ms"
_LENGTH: Final = "interval_ms"
_SENDER: Final = ("proxy", "listener", "api")
"""The columns that tell the events of an interval of _KEYS apart. They are names of the operator's and of
Kafka's, few, and no choice of a tenant's.
"""
_SENDER_HASHES: Final = ("sender_hash", "other_sender_hash")
"""Two hashes of _SENDER, of 64 bits each."""
_ROWS: Final = 100_000
"""Rows that are summed together, which bounds the memory. An hour of HOURLY may have more."""
_BYTES: Final = 64 << 20
"""Their size, if texts are long."""


def _result() -> StructType:
    keys = {field.name: field.dataType for field in EVENT.fields} | {EVENT_HOUR: LongType()}
    rates = [f"max_{way}_rate" for way in WAYS]
    rates += [f"p{percent}_{way}_rate" for percent in PERCENTS for way in WAYS]
    return StructType(
        [
            *[StructField(name, keys[name]) for name in _KEYS],
            *[StructField(name, LongType(), nullable=False) for name in COUNTS],
            *[StructField(name, DoubleType()) for name in rates],
            StructField(CONTRADICTED, BooleanType()),
        ]
    )


_RESULT: Final = _result()


def hours(events: DataFrame, by: str = HOUR) -> DataFrame:
    """Return HOURLY and `broker`, with the sums of COUNTS, the highest rates, the percentiles of rates and
    CONTRADICTED. Each event counts once: the first one.

    A rate is that of an interval, with all APIs and proxies. With DAY, EVENT_HOUR is the first one of a day.
    The events of deduplicate() with `by_hour` are not shuffled and sorted again.
    """
    timed = with_hour(events)
    is_placed = HOURLY_HASH in timed.columns and by == HOUR
    if by == DAY:
        timed = timed.withColumn(EVENT_HOUR, F.col(EVENT_HOUR) - F.col(EVENT_HOUR) % HOURS_PER_DAY)
    hashed = timed if is_placed else timed.withColumn(HOURLY_HASH, F.xxhash64(*HOURLY))
    sent = ordered(hashed, EVENT_HOUR, HOURLY_HASH).select(
        HOURLY_HASH, *_KEYS, _START, _LENGTH, *COUNTS, *_sender_hashes(), ORDER, DIGEST
    )
    placed = sent if is_placed else sent.repartition(HOURLY_HASH)
    return placed.sortWithinPartitions(HOURLY_HASH).mapInArrow(_summed, _RESULT)


def _sender_hashes() -> list[Column]:
    return [F.xxhash64(F.lit(place), *_SENDER).alias(name) for place, name in enumerate(_SENDER_HASHES)]


def _summed(batches: Iterable[Any]) -> Iterator[Any]:
    for table in whole_hours(batches):
        yield from _sums(table).to_batches()


def whole_hours(batches: Iterable[Any], rows: int = _ROWS) -> Iterator[Any]:
    """Yield tables of at least so many rows, all but the last one, that have all rows of an hour."""
    waiting: list[Any] = []
    highest = -(1 << 63)
    for batch in batches:
        if not batch.num_rows:
            continue
        hashes = batch.column(HOURLY_HASH).to_numpy()
        if hashes[0] < highest or (hashes[1:] < hashes[:-1]).any():
            raise ValueError("the events are not sorted by the hash of their hour")
        if sum(each.num_rows for each in waiting) >= rows or sum(each.nbytes for each in waiting) >= _BYTES:
            cut = 0 if hashes[0] > highest else int(np.searchsorted(hashes, highest, "right"))
            if cut < batch.num_rows:
                yield pa.Table.from_batches([*waiting, batch.slice(0, cut)])
                waiting, batch = [], batch.slice(cut)
        waiting.append(batch)
        highest = hashes[-1]
    if waiting:
        yield pa.Table.from_batches(waiting)


def _sums(table: Any) -> Any:
    """Return the rows of _RESULT for a table with all rows of its hours."""
    group = combined([_numbers(table, name) for name in _KEYS])
    rows, moments, contradicted = _first_events(table, combined([group, _numbers(table, _START)]))
    begins = begins_of(moments)
    group = group[rows[begins]]
    lengths = np.maximum.reduceat(_numbers(table, _LENGTH)[rows], begins)
    of_intervals = {name: totals(_numbers(table, name)[rows], begins) for name in COUNTS}
    hour_begins = begins_of(group)
    found: dict[str, NDArray[Any]] = {name: totals(of_intervals[name], hour_begins) for name in COUNTS}
    rates = {way: of_intervals[way] * 1000.0 / lengths for way in WAYS}
    for way in WAYS:
        found[f"max_{way}_rate"] = np.maximum.reduceat(rates[way], hour_begins)
    in_order = {way: rates[way][np.lexsort((rates[way], group))] for way in WAYS}
    for percent in PERCENTS:
        for way in WAYS:
            found[f"p{percent}_{way}_rate"] = percentile(in_order[way], hour_begins, percent)
    first = begins[hour_begins]
    found[CONTRADICTED] = np.logical_or.reduceat(contradicted, first)
    keys = table.select(list(_KEYS)).take(rows[first])
    return pa.table([*keys.columns, *map(pa.array, found.values())], names=[*_KEYS, *found])


def _numbers(table: Any, name: str) -> Ints:
    """A column of whole numbers, or a number for each text of a column; null is -1."""
    column = table.column(name)
    if not pa.types.is_integer(column.type):
        encoded = column.dictionary_encode()
        column = pa.chunked_array([chunk.indices for chunk in encoded.chunks])
    values: Ints = column.fill_null(-1).to_numpy().astype(np.int64, copy=False)
    return values


def _first_events(table: Any, moments: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Return the rows of the events that count, in the order of `moments`, with their moments and whether
    another event contradicts them. Events of one moment and one sender are the same event.
    """
    rows = np.argsort(moments)
    moments = moments[rows]
    beside = moments[1:] == moments[:-1]
    if not beside.any():
        return rows, moments, np.zeros(len(rows), np.bool_)
    several = np.append(beside, False) | np.append(False, beside)
    one, other, order, digest = (_numbers(table, name) for name in (*_SENDER_HASHES, ORDER, DIGEST))
    some = rows[several]
    rows[several] = some[np.lexsort((order[some], other[some], one[some], moments[several]))]
    again = beside & ~_changes(one[rows]) & ~_changes(other[rows])
    differs = np.append(False, again & _changes(digest[rows]))
    counted = np.flatnonzero(np.append(True, ~again))
    return rows[counted], moments[counted], np.logical_or.reduceat(differs, counted)


def _changes(values: Ints) -> NDArray[np.bool_]:
    """Whether each number, from the second one, differs from the one before."""
    found: NDArray[np.bool_] = values[1:] != values[:-1]
    return found
