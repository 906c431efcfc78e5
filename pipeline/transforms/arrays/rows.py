"""Rows of events as arrays of numbers: each different text of a column has a number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray

from pipeline.transforms.runs import Ints

PARTITION: Final = "partition"
"""The only column of numbers that may be null in an event."""
NULL: Final = -1
"""A text that is null. Once the rows are checked, also a partition that is null."""
MISSING: Final = -(1 << 63)
"""A number that is null, in rows that are not checked yet."""
Hashes = NDArray[np.uint64]
_FACTOR: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
"""2^64 divided by the golden ratio: neighboring numbers get hashes that are far from each other."""
_HALF: Final = np.uint64(32)


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of the same length. `numbers` has the values of a column of numbers, or the places of a
    column's values in `texts`.
    """

    numbers: Mapping[str, NDArray[Any]]
    texts: Mapping[str, Any]

    def __len__(self) -> int:
        return len(next(iter(self.numbers.values())))

    def __getitem__(self, name: str) -> Ints:
        found: Ints = self.numbers[name].astype(np.int64, copy=False)
        return found

    def take(self, rows: Ints) -> "Rows":
        """Return some of the rows."""
        return Rows({name: column[rows] for name, column in self.numbers.items()}, self.texts)

    def values(self, names: Sequence[str], rows: Ints) -> list[Any]:
        """Return columns of some of the rows, which are checked, as Arrow arrays."""
        found = []
        for name in names:
            column = self.numbers[name][rows]
            may_be_null = name in self.texts or name == PARTITION
            values = pa.array(column, mask=column == NULL if may_be_null else None)
            found.append(self.texts[name].take(values) if name in self.texts else values)
        return found


def from_arrow(table: Any) -> Rows:
    """Return the rows of a table; its texts may be encoded with dictionaries."""
    numbers: dict[str, NDArray[Any]] = {}
    texts: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
            missing = MISSING if pa.types.is_integer(column.type) else False
            whole = column.cast(pa.int64()) if pa.types.is_integer(column.type) else column
            numbers[name] = (whole.fill_null(missing) if whole.null_count else whole).to_numpy()
        else:
            numbers[name], texts[name] = _numbered(column)
    return Rows(numbers, texts)


def _numbered(column: Any) -> tuple[NDArray[np.int32], Any]:
    """Return the place of each value among the column's different ones, and these."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    whole = column.chunk(0) if column.num_chunks == 1 else column.unify_dictionaries().combine_chunks()
    places = whole.indices.cast(pa.int32())
    texts = whole.dictionary.cast(pa.string())
    return (places.fill_null(NULL) if places.null_count else places).to_numpy(), texts


def hashed(rows: Rows, names: Sequence[str]) -> Hashes:
    """Return a hash of these columns for each row, the same in every process."""
    found = np.full(len(rows), _FACTOR, np.uint64)
    for name in names:
        if name in rows.texts:
            # The last one is that of null, whose place is -1.
            found ^= np.append(_hashes(rows.texts[name]), np.uint64(0))[rows[name]]
        else:
            found ^= rows[name].view(np.uint64)
        found *= _FACTOR
        found ^= found >> _HALF
    return found


def _hashes(texts: Any) -> Hashes:
    # Texts may be no UTF-8.
    values = np.empty(len(texts), object)
    values[:] = texts.cast(pa.binary()).to_pylist()
    found: Hashes = pd.util.hash_array(values, categorize=False)
    return found
