"""Rows of events as arrays of numbers: each different text of a column has a number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
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
_KINDS: Final = (np.int8, np.int16, np.int32)


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

    def take(self, rows: Ints | slice) -> "Rows":
        """Return some of the rows."""
        return Rows({name: picked(column, rows) for name, column in self.numbers.items()}, self.texts)

    def where(self, mask: NDArray[np.bool_]) -> "Rows":
        """Return the rows that the mask selects. If they follow each other, nothing is copied."""
        count = int(np.count_nonzero(mask))
        if count == len(self):
            return self
        first = int(mask.argmax())
        if mask[first : first + count].all():
            return self.take(slice(first, first + count))
        return self.take(np.flatnonzero(mask))

    def copy(self) -> "Rows":
        """Return the rows in memory of their own."""
        numbers = {
            name: column if is_constant(column) else column.copy() for name, column in self.numbers.items()
        }
        return Rows(numbers, self.texts)

    def values(self, names: Sequence[str], rows: Ints) -> list[Any]:
        """Return columns of some of the rows, which are checked, as Arrow arrays."""
        found = []
        for name in names:
            column = self.numbers[name][rows]
            may_be_null = name in self.texts or name == PARTITION
            values = pa.array(column, mask=column == NULL if may_be_null else None)
            found.append(self.texts[name].take(values) if name in self.texts else values)
        return found


def constant(value: int, count: int, kind: type[np.signedinteger[Any]] = np.int64) -> NDArray[Any]:
    """Return a column with the same value in all rows, which takes the memory of one."""
    return np.broadcast_to(kind(value), (count,))


def is_constant(column: NDArray[Any]) -> bool:
    """Whether the column is one of constant()."""
    return column.strides == (0,)


def picked(column: NDArray[Any], rows: Ints | slice) -> NDArray[Any]:
    """Return the values of some rows."""
    if is_constant(column) and not isinstance(rows, slice):
        return np.broadcast_to(column[:1].reshape(()), (len(rows),)) if len(column) else column
    return column[rows]


def together(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts, which are checked and have the same columns."""
    if len(parts) == 1:
        return parts[0]
    numbers: dict[str, NDArray[Any]] = {}
    texts: dict[str, Any] = {}
    for name in parts[0].numbers:
        columns = [part.numbers[name] for part in parts]
        if name in parts[0].texts:
            places, texts[name] = _united([part.texts[name] for part in parts])
            columns = [_renumbered(*each) for each in zip(columns, places, strict=True)]
        numbers[name] = _concatenated(columns)
    return Rows(numbers, texts)


def _united(texts: Sequence[Any]) -> tuple[list[NDArray[Any] | None], Any]:
    """Return the different texts, and the place of each text of each part among them; None: where it was."""
    if all(some.equals(texts[0]) for some in texts[1:]):
        return [None] * len(texts), texts[0]
    every = pa.concat_arrays(texts).dictionary_encode()
    places = np.split(every.indices.to_numpy(), np.cumsum([len(some) for some in texts])[:-1])
    return list(places), every.dictionary


def _renumbered(column: NDArray[Any], places: NDArray[Any] | None) -> NDArray[Any]:
    if places is None or np.array_equal(places, np.arange(len(places))):
        return column
    # The last one is that of null, whose place is -1.
    found = np.append(places, NULL).astype(np.int32)
    return constant(found[column[0]], len(column), np.int32) if is_constant(column) else found[column]


def _concatenated(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if all(map(is_constant, columns)) and len({int(column[0]) for column in columns}) == 1:
        return constant(int(columns[0][0]), sum(map(len, columns)), columns[0].dtype.type)
    return np.concatenate(columns)


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
            numbers[name], texts[name] = numbered(column)
    return Rows(numbers, texts)


def numbered(column: Any) -> tuple[NDArray[np.int32], Any]:
    """Return the place of each value among the column's different ones, and these."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    whole = column.chunk(0) if column.num_chunks == 1 else column.unify_dictionaries().combine_chunks()
    places = whole.indices.cast(pa.int32())
    texts = whole.dictionary.cast(pa.string())
    return (places.fill_null(NULL) if places.null_count else places).to_numpy(), texts


def narrow(column: NDArray[Any], bounds: tuple[int, int] | None = None) -> NDArray[Any]:
    """Return the numbers with as few bytes as they need. `bounds`: of the numbers, if they are known."""
    if not len(column):
        return column
    low, high = bounds or (int(column.min()), int(column.max()))
    kind = next((kind for kind in _KINDS if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max), None)
    if low == high:
        return constant(low, len(column), kind or np.int64)
    return column if kind is None else column.astype(kind, copy=False)


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
    # The command's process does not wait for its import.
    import pandas as pd

    # Texts may be no UTF-8.
    values = np.empty(len(texts), object)
    values[:] = texts.cast(pa.binary()).to_pylist()
    found: Hashes = pd.util.hash_array(values, categorize=False)
    return found
