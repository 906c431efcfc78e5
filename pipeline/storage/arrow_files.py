"""Reads local Parquet files with Arrow in Spark's tasks, in a fraction of the time that Spark's reader takes.

Spark's own reader reads all other files: those on other file systems, and those whose columns have other
types than those of events.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote
from zlib import crc32

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegerType, LongType

from pipeline.schema import EVENT, names
from pipeline.storage.filesystem import literal
from pipeline.storage.local_files import list_files
from pipeline.storage.sources import Source, layout, near_dates, shown_files
from pipeline.transforms.arrays.valid import Range, all_are_events
from pipeline.transforms.duplicates import ORDER, place_in_files
from pipeline.transforms.events import latest_ms
from pipeline.window import Window

_LOCAL: Final = re.compile("file:/+")
_ROWS: Final = 500_000
"""Rows that are read together."""
_BYTES: Final = 128 << 20
"""Their size in the file, not compressed."""
_MOST_TOGETHER: Final = 4
"""How many times as many rows may be read together of one column."""
_FEW_ROWS: Final = 50_000
"""Rows of which all columns are read together."""
_FEW_BYTES: Final = 1 << 30
"""Of files, with about 100 million events."""
_MOST_FILES: Final = 10_000
"""The most files whose footers this process reads, at about a millisecond each."""
_START: Final = "interval_start_ms"
_TAIL: Final = 8
"""Bytes behind a file's footer."""
_TEXTS: Final = [
    field.name for field in EVENT.fields if not isinstance(field.dataType, IntegerType | LongType)
]


@dataclass(frozen=True, slots=True)
class Piece:
    """Row groups of a file."""

    file: str
    place: int
    """PLACE of the file's first row."""
    first: int
    """The number of the first row in the file."""
    groups: Sequence[int]
    rows: int
    together: int
    """Rows that are read together: fewer if texts are long."""
    starts: tuple[int, int] | None
    """The lowest and the highest interval_start_ms; None if the file has no statistics of it."""
    length_ms: int | None
    """The interval_ms of all rows; None if the statistics do not tell it, or that all rows are events."""
    footer: int
    """What identifies the file's content: see _checksum()."""


def pieces(spark: SparkSession, source: Source, window: Window) -> list[Piece] | None:
    """Return the pieces of the source's Parquet files, of dates near the window if the source is partitioned
    by date; None if Spark has to read them.
    """
    if not source.place.startswith("/"):
        return None
    files = list_files(spark, source.place, window, _MOST_FILES)
    if files is None:
        files = _listed_by_spark(spark, source, window)
    if files is None or len(files) > _MOST_FILES:
        return None
    found, latest = [], latest_ms()
    for file, place in files:
        some = _pieces_of(file, place, latest)
        if some is None:
            return None
        found += some
    return found


def _listed_by_spark(spark: SparkSession, source: Source, window: Window) -> list[tuple[str, int]] | None:
    """Return what list_files() does, of a table with other folders or other names. None if folders, such as
    cluster=main, have columns of events: Spark takes these instead of those in the files.
    """
    every = spark.read.format("binaryFile").options(**layout(spark, source.place)).load(literal(source.place))
    if not set(every.columns).isdisjoint(names(EVENT)):
        return None
    files = near_dates(spark, source, window, every)
    rows = files.select(F.col("_metadata.file_path").alias("file"), place_in_files().alias("place")).collect()
    # Spark gives URLs, with escapes.
    return [(unquote(_LOCAL.sub("/", row.file)), row.place) for row in rows]


def leave_little_to_java(place: str) -> bool:
    """Whether tasks will probably read the files at a place, and there are so few bytes that Java has little
    to do: its work grows with the rows of the table that a job writes.
    """
    root = Path(place)
    try:
        shown = [root] if root.is_file() else list(shown_files(root, ".parquet"))
        size = sum(file.stat().st_size for file in shown)
    except OSError:
        return False
    return bool(shown) and size <= _FEW_BYTES and _pieces_of(str(shown[0]), 0, 0) is not None


def _pieces_of(file: str, place: int, latest: int) -> list[Piece] | None:
    """Return the pieces of a file; None if its columns are not those of events, or it cannot be read."""
    try:
        with pa.OSFile(file) as opened:
            footer = pq.read_metadata(opened)
            content = _checksum(opened, footer.serialized_size)
        schema = footer.schema.to_arrow_schema()
    except (OSError, pa.ArrowException):
        return None
    for field in EVENT.fields:
        places = schema.get_all_field_indices(field.name)
        if len(places) != 1 or not _fits(schema.field(places[0]).type, field.dataType):
            return None
    paths = {footer.schema.column(at).path: at for at in range(len(footer.schema))}
    found, groups, first, count, size = [], [], 0, 0, 0
    for group in range(footer.num_row_groups):
        groups.append(group)
        count += footer.row_group(group).num_rows
        size += footer.row_group(group).total_byte_size
        if count >= _ROWS or group + 1 == footer.num_row_groups:
            together = max(1, min(_ROWS, _BYTES * count // max(size, 1)))
            ranges = [_ranges(footer.row_group(each), paths) for each in groups]
            known = (_starts(ranges), _length(ranges, latest))
            found.append(Piece(file, place, first, groups, count, together, *known, content))
            first, groups, count, size = first + count, [], 0, 0
    return found


def _checksum(file: Any, size: int) -> int:
    """Return a checksum of a file's footer, which has this size, and the places and statistics of pages."""
    file.seek(-size - _TAIL, os.SEEK_END)
    found = crc32(file.read(size))
    file.seek(0)
    return found


def _ranges(group: Any, paths: Mapping[str, int]) -> dict[str, Range]:
    """Return what the statistics of a row group tell of the columns of events."""
    found = {}
    for name in names(EVENT):
        known = group.column(paths[name]).statistics
        low = high = nulls = values = None
        if known is not None:
            with suppress(UnicodeDecodeError):
                low, high = (known.min, known.max) if known.has_min_max else (None, None)
            nulls = known.null_count if known.has_null_count else None
            values = None if nulls is None else group.num_rows - nulls
        found[name] = Range(low, high, nulls, values)
    return found


def _starts(groups: Sequence[Mapping[str, Range]]) -> tuple[int, int] | None:
    """The lowest and the highest interval_start_ms in row groups; None if one has no statistics."""
    found = [ranges[_START] for ranges in groups]
    if any(each.low is None for each in found):
        return None
    return min(each.low for each in found), max(each.high for each in found)


def _length(groups: Sequence[Mapping[str, Range]], latest_ms: int) -> int | None:
    """The length of every interval in row groups of which each row is an event, if the statistics tell it."""
    lengths = {end for ranges in groups for end in ranges["interval_ms"][:2]}
    if len(lengths) != 1 or not all(all_are_events(ranges, latest_ms) for ranges in groups):
        return None
    found: int | None = lengths.pop()
    return found


def period_of(found: Sequence[Piece], window: Window) -> Window | None:
    """Return the window; an end that it lacks is that of the events in the pieces, null if there are none.

    None if the statistics do not tell it.
    """
    start, end = window.start_ms, window.end_ms
    if start is not None and end is not None:
        return window
    starts, ends = [], []
    for piece in found:
        if piece.starts is None or piece.length_ms is None:
            return None
        first, last = piece.starts
        # The window lacks an end, so that this event is in it.
        if start is None or last >= start:
            ends.append(last + piece.length_ms)
        if end is None or first < end:
            starts.append(first)
    return Window(
        min(starts, default=None) if start is None else start, max(ends, default=None) if end is None else end
    )


def _fits(kind: Any, wanted: DataType) -> bool:
    """Whether a column has all values of a type as they are."""
    if isinstance(wanted, IntegerType):
        return bool(pa.types.is_int32(kind))
    if isinstance(wanted, LongType):
        return bool(pa.types.is_int32(kind) or pa.types.is_int64(kind))
    texts = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(texts) or pa.types.is_large_string(texts))


@contextmanager
def _opened(piece: Piece) -> Iterator[Any]:
    """Open the file. Raises OSError, with its name, if it cannot be read, or is not what it was."""
    try:
        # Spark writes checksums of pages.
        options = {"read_dictionary": _TEXTS, "page_checksum_verification": True}
        with pa.OSFile(piece.file) as opened, pq.ParquetFile(opened, **options) as file:
            if _checksum(opened, file.metadata.serialized_size) != piece.footer:
                raise OSError("another program has replaced the file since the job began")
            yield file
    except (OSError, pa.ArrowException) as error:
        raise OSError(f"{error} in file {Path(piece.file)}") from error


def read_tables(piece: Piece) -> Iterator[Any]:
    """Yield tables of the rows with ORDER. Raises OSError as _opened() does."""
    first = piece.place + piece.first
    with _opened(piece) as file:
        for batch in file.iter_batches(piece.together, piece.groups, names(EVENT), use_threads=False):
            table = pa.Table.from_batches([batch])
            order = pa.array(np.arange(first, first + len(table)))
            yield table.append_column(ORDER, order)
            first += len(table)


def has_short_columns(piece: Piece) -> bool:
    """Whether the rows of a column may be read together."""
    return piece.rows <= _MOST_TOGETHER * piece.together


def read_columns(piece: Piece) -> Iterator[tuple[str, Any]]:
    """Yield the columns of the rows, one after the other. Raises OSError as _opened() does."""
    every = names(EVENT)
    with _opened(piece) as file:
        for some in [every] if piece.rows < _FEW_ROWS else [[name] for name in every]:
            table = file.read_row_groups(piece.groups, some, use_threads=False)
            yield from zip(table.column_names, table.columns, strict=True)


def read_positive(piece: Piece, columns: Sequence[str]) -> Any:
    """Return a table, with ORDER, of the rows in which one of these columns is above 0.

    None if read_tables() takes less memory. Raises OSError as _opened() does.
    """
    if not has_short_columns(piece):
        return None
    with _opened(piece) as file:

        def column(name: str) -> Any:
            return file.read_row_groups(piece.groups, [name], use_threads=False).column(name)

        rows = np.flatnonzero(np.logical_or.reduce([column(name).to_numpy() > 0 for name in columns]))
        if len(rows) > piece.together:
            return None
        taken = {
            name: column(name).unify_dictionaries().take(pa.array(rows)) if len(rows) else []
            for name in names(EVENT)
        }
    return pa.table({**taken, ORDER: pa.array(rows + piece.place + piece.first)})
