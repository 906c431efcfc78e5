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
from pipeline.transforms.arrays.rows import (
    MISSING,
    NULL,
    PARTITION,
    Rows,
    from_arrow,
    hashed,
    is_constant,
    narrow,
)
from pipeline.transforms.duplicates import DIGEST, EVENT_HOUR, HOURLY, ORDER, SAME_PLACE, VALUES
from pipeline.transforms.runs import begins_of, combined
from pipeline.window import Window

HOUR_MS: Final = 3_600_000
PART: Final = "part"
_EVENTS: Final = "events"
_START: Final = "interval_start_ms"
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
    found = found & are_within(rows, packing.window)
    counted = [len(rows), bad, *span(rows if found.all() else rows.where(found))]
    if packing.are_wanted is not None:
        found = found & packing.are_wanted(rows)
    return found, counted


def are_within(rows: Rows, window: Window) -> NDArray[np.bool_]:
    """Return whether the interval of each row begins in the window."""
    start = rows[_START]
    found = np.ones(len(rows), np.bool_)
    for end, is_within in ((window.start_ms, start.__ge__), (window.end_ms, start.__lt__)):
        if end is not None:
            found &= is_within(end)
    return found


def span(rows: Rows) -> tuple[int | None, int | None]:
    """Return the start of the first interval and the end of the last one; None if there are no rows."""
    if not len(rows):
        return None, None
    start, length = rows[_START], rows.numbers["interval_ms"]
    end = int(start.max()) + int(length[0]) if is_constant(length) else int((start + length).max())
    return int(start.min()), end


def _parcels(rows: Rows, packing: Packing) -> Mapping[int, bytes]:
    """Return the events of each part; at least one parcel."""
    numbers = with_null_partitions(rows)
    period = rows[_START] // packing.period_ms
    place = hashed(Rows({**numbers, EVENT_HOUR: period}, rows.texts), HOURLY)
    numbers[DIGEST] = hashed(rows, VALUES).view(np.int64)
    packed = Rows({name: numbers[name] for name in (*IDENTITY, ORDER, DIGEST, *packing.counts)}, rows.texts)
    part = ((place >> _PART_BITS) % np.uint64(packing.parts)).astype(np.uint16)
    in_order = np.argsort(part, kind="stable")
    part = part[in_order]
    begins = begins_of(part) if len(part) else np.zeros(1, np.int64)
    ends = np.append(begins[1:], len(part))
    numbers = {name: narrow(column[in_order]) for name, column in packed.numbers.items()}
    ordered = Rows(numbers, {name: texts for name, texts in packed.texts.items() if name in numbers})
    return {
        int(part[begin]) if len(part) else 0: _written(ordered.take(slice(begin, end)))
        for begin, end in zip(begins, ends, strict=True)
    }


def with_null_partitions(rows: Rows) -> dict[str, NDArray[Any]]:
    """Return the columns of rows that are checked."""
    partition = rows[PARTITION]
    return {**rows.numbers, PARTITION: np.where(partition == MISSING, NULL, partition)}


def _written(rows: Rows) -> bytes:
    """Return a table in Arrow's format, with the texts that its rows have."""
    some = trimmed(rows)
    columns = {}
    for name, column in some.numbers.items():
        columns[name] = pa.array(column)
        if name in some.texts:
            places = pa.array(column, mask=column == NULL)
            columns[name] = pa.DictionaryArray.from_arrays(places, some.texts[name])
    batch = pa.record_batch(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def trimmed(rows: Rows) -> Rows:
    """Return the rows, without the texts that none of them has."""
    numbers, texts = dict(rows.numbers), dict(rows.texts)
    for name, every in rows.texts.items():
        used = np.zeros(len(every) + 1, np.bool_)
        used[numbers[name]] = True
        used[NULL] = False
        place = np.cumsum(used, dtype=np.int32) - 1
        place[NULL] = NULL
        numbers[name] = place[numbers[name]]
        texts[name] = every.take(pa.array(np.flatnonzero(used)))
    return Rows(numbers, texts)


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
                yield from portions(with_event_hour(joined(some)))


def portions(rows: Rows, most: int = 6 * _ROWS) -> Iterator[Rows]:
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
    """Return the rows of the tables together."""
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
    return Rows(numbers, texts)


def with_event_hour(rows: Rows) -> Rows:
    """Add EVENT_HOUR."""
    return Rows({**rows.numbers, EVENT_HOUR: rows[_START] // HOUR_MS}, rows.texts)
