"""Brings the events that belong together to one task, in parcels.

A parcel is a row of Spark with a table of events, in Arrow's format. For Spark, which shuffles parcels, the
table is bytes: to shuffle events as rows, Spark would make a row of each event, and read it again. The first
tasks check events and pack them, the second ones unpack them and sum them up:

    batches of events ─ pack() ─► parcels of each part ─ Spark's shuffle ─► unpack() ─► rows of whole parts

All events of an hour of HOURLY are in one part, and therefore also all events with one identity. What has
been read is counted on the way, in numbers that go with the parcels.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from pipeline.schema import IDENTITY, names
from pipeline.transforms.arrays.rows import MISSING, NULL, PARTITION, Rows, from_arrow, hashed
from pipeline.transforms.duplicates import DIGEST, EVENT_HOUR, HOURLY, ORDER, SAME_PLACE, VALUES
from pipeline.transforms.runs import begins_of, combined
from pipeline.window import Window

HOUR_MS: Final = 3_600_000
PART: Final = "part"
_EVENTS: Final = "events"
READ: Final = "events_read"
BAD: Final = "events_invalid"
FIRST: Final = "first_start_ms"
END: Final = "last_end_ms"
COUNTED: Final = StructType([StructField(name, LongType()) for name in (READ, BAD, FIRST, END)])
"""How many rows were read and how many of them are no events; the start of the first interval in the window
and the end of the last one, in ms, null without events.
"""
PARCEL: Final = StructType(
    [StructField(PART, IntegerType()), StructField(_EVENTS, BinaryType()), *COUNTED.fields]
)
_ROWS: Final = 500_000
"""Rows that are packed together, which bounds the memory."""
_BYTES: Final = 64 << 20
"""Their size, if texts are long."""
_PART_BITS: Final = np.uint64(33)
_KINDS: Final = (np.int8, np.int16, np.int32)


@dataclass(frozen=True, slots=True)
class Packing:
    """What is packed, and how. `are_events` tells which rows are events, `are_wanted` which of these."""

    counts: Sequence[str]
    """The columns that are packed beside those that tell events apart."""
    window: Window
    parts: int
    are_events: Callable[[Rows], NDArray[np.bool_]]
    are_wanted: Callable[[Rows], NDArray[np.bool_]] | None = None
    period_ms: int = HOUR_MS
    """The events of a period of this length are in one part."""


def chunks(batches: Iterable[Any], rows: int = _ROWS) -> Iterator[Any]:
    """Join batches to tables of at least so many rows, or _BYTES, all but the last one."""
    waiting: list[Any] = []
    count = size = 0
    for batch in batches:
        waiting.append(batch)
        count, size = count + batch.num_rows, size + batch.nbytes
        if count >= rows or size >= _BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, count, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def pack(table: Any, packing: Packing) -> Any:
    """Return a batch of PARCEL with the table's events of the window. Its first row has the counts."""
    rows = from_arrow(table)
    found, counted = chosen(rows, packing)
    parcels = _parcels(rows if found.all() else rows.take(np.flatnonzero(found)), packing)
    columns: list[Any] = [pa.array(parcels.keys(), pa.int32()), pa.array(parcels.values(), pa.binary())]
    columns += [pa.array([value] + [None] * (len(parcels) - 1), pa.int64()) for value in counted]
    return pa.record_batch(columns, names=names(PARCEL))


def chosen(rows: Rows, packing: Packing) -> tuple[NDArray[np.bool_], list[int | None]]:
    """Return which rows are wanted events of the window, and the values of COUNTED."""
    found = packing.are_events(rows)
    bad = len(rows) - int(np.count_nonzero(found))
    start = rows["interval_start_ms"]
    for end, is_within in ((packing.window.start_ms, start.__ge__), (packing.window.end_ms, start.__lt__)):
        if end is not None:
            found = found & is_within(end)
    counted: list[int | None] = [len(rows), bad, None, None]
    if found.any():
        counted[2] = int(start[found].min())
        counted[3] = int((start + rows["interval_ms"])[found].max())
    if packing.are_wanted is not None:
        found = found & packing.are_wanted(rows)
    return found, counted


def _parcels(rows: Rows, packing: Packing) -> Mapping[int, bytes]:
    """Return the events of each part; at least one parcel."""
    numbers = with_null_partitions(rows)
    period = rows["interval_start_ms"] // packing.period_ms
    place = hashed(Rows({**numbers, EVENT_HOUR: period}, rows.texts), HOURLY)
    numbers[DIGEST] = hashed(rows, VALUES).view(np.int64)
    packed = Rows({name: numbers[name] for name in (*IDENTITY, ORDER, DIGEST, *packing.counts)}, rows.texts)
    part = ((place >> _PART_BITS) % np.uint64(packing.parts)).astype(np.uint16)
    in_order = np.argsort(part, kind="stable")
    part = part[in_order]
    begins = begins_of(part) if len(part) else np.zeros(1, np.int64)
    ends = np.append(begins[1:], len(part))
    columns = {name: narrow(column[in_order]) for name, column in packed.numbers.items()}
    return {
        int(part[begin]) if len(part) else 0: _written(
            {name: column[begin:end] for name, column in columns.items()}, packed.texts
        )
        for begin, end in zip(begins, ends, strict=True)
    }


def with_null_partitions(rows: Rows) -> dict[str, NDArray[Any]]:
    """Return the columns of rows that are checked."""
    partition = rows[PARTITION]
    return {**rows.numbers, PARTITION: np.where(partition == MISSING, NULL, partition)}


def narrow(column: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers with as few bytes as they need."""
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    for kind in _KINDS:
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return column.astype(kind)
    return column


def _written(numbers: Mapping[str, NDArray[Any]], texts: Mapping[str, Any]) -> bytes:
    """Return a table in Arrow's format, with the texts that its rows have."""
    batch = trimmed(numbers, texts)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def trimmed(numbers: Mapping[str, NDArray[Any]], texts: Mapping[str, Any]) -> Any:
    """Return a batch of these columns, with the texts that its rows have."""
    columns = {}
    for name, column in numbers.items():
        if name not in texts:
            columns[name] = pa.array(column)
            continue
        used = np.zeros(len(texts[name]) + 1, np.bool_)
        used[column] = True
        used[NULL] = False
        place = np.cumsum(used, dtype=np.int32) - 1
        place[NULL] = NULL
        indices = place[column]
        some = texts[name].take(pa.array(np.flatnonzero(used)))
        columns[name] = pa.DictionaryArray.from_arrays(pa.array(indices, mask=indices == NULL), some)
    return pa.record_batch(columns)


_JOINS: Final[Mapping[str, Callable[[Sequence[int]], int]]] = {READ: sum, BAD: sum, FIRST: min, END: max}


@dataclass(slots=True)
class Counted:
    """The sums of COUNTED."""

    values: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(names(COUNTED)))

    def add(self, counts: Iterable[Sequence[int | None]]) -> None:
        """Take the values of each column."""
        for name, found in zip(names(COUNTED), counts, strict=True):
            values = [value for value in (self.values[name], *found) if value is not None]
            self.values[name] = _JOINS[name](values) if values else None


@dataclass(slots=True)
class Unpacked:
    """The parcels of a task, by part, and the sums of their counts."""

    parts: dict[int, list[Any]] = field(default_factory=dict)
    counted: Counted = field(default_factory=Counted)

    def add(self, batch: Any) -> None:
        """Take a batch of PARCEL."""
        for part, events in zip(batch.column(PART).to_pylist(), batch.column(_EVENTS), strict=True):
            self.parts.setdefault(part, []).append(events.as_buffer())
        self.counted.add(batch.column(name).to_pylist() for name in names(COUNTED))

    def rows(self) -> Iterator[Rows]:
        """Yield the events of each part, with EVENT_HOUR, and forget them."""
        while self.parts:
            _, parcels = self.parts.popitem()
            tables = [pa.ipc.open_stream(parcel).read_all() for parcel in parcels]
            some = [table for table in tables if table.num_rows]
            if some:
                yield from portions(joined(some))


def portions(rows: Rows, most: int = 4 * _ROWS) -> Iterator[Rows]:
    """Yield portions of about so many rows. Those of a tenant's use of a partition stay together."""
    count = len(rows) // most + 1
    if count == 1:
        yield rows
        return
    portion = combined([rows[name] for name in SAME_PLACE]) % count
    for number in range(count):
        found = np.flatnonzero(portion == number)
        if len(found):
            yield rows.take(found)


def joined(tables: Sequence[Any]) -> Rows:
    """Return the rows of the tables together, with EVENT_HOUR."""
    numbers: dict[str, NDArray[Any]] = {}
    texts: dict[str, Any] = {}
    for name in tables[0].column_names:
        pieces = [table.column(name) for table in tables]
        if not pa.types.is_dictionary(pieces[0].type):
            numbers[name] = np.concatenate([piece.to_numpy() for piece in pieces])
            continue
        column = pa.chunked_array([chunk for piece in pieces for chunk in piece.chunks])
        unified = column.unify_dictionaries().chunks
        places = [chunk.indices.fill_null(NULL).to_numpy() for chunk in unified]
        numbers[name], texts[name] = np.concatenate(places), unified[0].dictionary
    numbers[EVENT_HOUR] = numbers["interval_start_ms"] // HOUR_MS
    return Rows(numbers, texts)
