"""Reads local Parquet files with Arrow in Spark's tasks, in a fraction of the time that Spark's reader takes.

Spark's own reader reads all other files: those on other file systems, and those whose columns have other
types than those of events.
"""

import os
import re
from collections.abc import Iterator, Sequence
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
from pipeline.transforms.duplicates import ORDER, place_in_files
from pipeline.window import Window

_LOCAL: Final = re.compile("file:/+")
_ROWS: Final = 500_000
"""Rows that are read together."""
_BYTES: Final = 128 << 20
"""Their size in the file, not compressed."""
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
    found = []
    for file, place in files:
        some = _pieces_of(file, place)
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
    return bool(shown) and size <= _FEW_BYTES and _pieces_of(str(shown[0]), 0) is not None


def _pieces_of(file: str, place: int) -> list[Piece] | None:
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
    start = next(at for at in range(len(footer.schema)) if footer.schema.column(at).path == _START)
    found, groups, first, count, size = [], [], 0, 0, 0
    for group in range(footer.num_row_groups):
        groups.append(group)
        count += footer.row_group(group).num_rows
        size += footer.row_group(group).total_byte_size
        if count >= _ROWS or group + 1 == footer.num_row_groups:
            together = max(1, min(_ROWS, _BYTES * count // max(size, 1)))
            starts = _range([footer.row_group(each).column(start).statistics for each in groups])
            found.append(Piece(file, place, first, groups, count, together, starts, content))
            first, groups, count, size = first + count, [], 0, 0
    return found


def _checksum(file: Any, size: int) -> int:
    """Return a checksum of a file's footer, which has this size, and the places and statistics of pages."""
    file.seek(-size - _TAIL, os.SEEK_END)
    found = crc32(file.read(size))
    file.seek(0)
    return found


def _range(statistics: Sequence[Any]) -> tuple[int, int] | None:
    """The lowest and the highest value of a column in row groups; None if one has no statistics."""
    if not all(each is not None and each.has_min_max for each in statistics):
        return None
    return min(each.min for each in statistics), max(each.max for each in statistics)


def _fits(kind: Any, wanted: DataType) -> bool:
    """Whether a column has all values of a type as they are."""
    if isinstance(wanted, IntegerType):
        return bool(pa.types.is_int32(kind))
    if isinstance(wanted, LongType):
        return bool(pa.types.is_int32(kind) or pa.types.is_int64(kind))
    texts = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(texts) or pa.types.is_large_string(texts))


def read_tables(piece: Piece) -> Iterator[Any]:
    """Yield tables of the rows with ORDER. Raises OSError, with the file's name, if it cannot be read."""
    first = piece.place + piece.first
    try:
        # Spark writes checksums of pages.
        options = {"read_dictionary": _TEXTS, "page_checksum_verification": True}
        with pa.OSFile(piece.file) as opened, pq.ParquetFile(opened, **options) as file:
            if _checksum(opened, file.metadata.serialized_size) != piece.footer:
                raise OSError("another program has replaced the file since the job began")
            read = file.iter_batches(piece.together, piece.groups, names(EVENT), use_threads=False)
            for batch in read:
                table = pa.Table.from_batches([batch])
                order = pa.array(np.arange(first, first + len(table)))
                yield table.append_column(ORDER, order)
                first += len(table)
    except (OSError, pa.ArrowException) as error:
        raise OSError(f"{error} in file {Path(piece.file)}") from error
