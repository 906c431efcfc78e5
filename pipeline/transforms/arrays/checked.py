"""Columns of events that are checked one by one, without a mask of rows.

A column is read, checked and narrowed before the next one is read. Most columns have few different values:
texts stay the numbers that the file's dictionary gives them, and a column with one value takes no memory.
"""

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from numpy.typing import NDArray

from pipeline.schema import EVENT
from pipeline.transforms.arrays.rows import NULL, PARTITION, Rows, narrow, numbered
from pipeline.transforms.arrays.valid import bounds

_LARGEST: Final = (1 << 63) - 1
_NULLABLE: Final = frozenset(field.name for field in EVENT.fields if field.nullable)


def checked(columns: Iterable[tuple[str, Any]], latest_ms: int) -> Rows | None:
    """Return the rows with these columns, with NULL for a partition that is null. None if one of them may be
    no event, by the rules of are_events().
    """
    numbers: dict[str, NDArray[Any]] = {}
    texts: dict[str, Any] = {}
    between = {**bounds(latest_ms), PARTITION: (0, _LARGEST)}
    for name, column in columns:
        if column.null_count and name not in _NULLABLE:
            return None
        if not pa.types.is_integer(column.type):
            places, texts[name] = numbered(column)
            if name == "api" and texts[name].index("").as_py() != NULL:
                return None
            least = NULL if column.null_count else 0
            numbers[name] = narrow(places, (least, len(texts[name]) - 1))
            continue
        found = pc.min_max(column)
        low, high = found["min"].as_py(), found["max"].as_py()
        least, most = between.get(name, (low, high))
        if low is not None and (low < least or high > most):
            return None
        if column.null_count:
            column, low = column.fill_null(NULL), NULL
            high = NULL if high is None else high
        numbers[name] = narrow(column.to_numpy(), (low, high))
    return Rows(numbers, texts)
