"""Tells in arrays which rows are events, by the same rules as the check of transforms.events."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyspark.sql.types import StringType

from pipeline.schema import COUNTS, EVENT, VERSION
from pipeline.transforms.arrays.rows import MISSING, NULL, PARTITION, Rows
from pipeline.transforms.events import EARLIEST_START_MS, LARGEST_COUNT, LONGEST_INTERVAL_MS

_BETWEEN: Final = {
    "v": (VERSION, VERSION),
    "interval_ms": (1, LONGEST_INTERVAL_MS),
    **dict.fromkeys(COUNTS, (0, LARGEST_COUNT)),
}


class Range(NamedTuple):
    """What statistics tell of a column: bounds of its values, None if there are none or the statistics lack
    them, and how many values are null and not null; None if the statistics do not tell.
    """

    low: Any
    high: Any
    nulls: int | None
    values: int | None


def bounds(latest_ms: int) -> dict[str, tuple[int, int]]:
    """Return the lowest and the highest number that events have in columns which are not null."""
    return {**_BETWEEN, "interval_start_ms": (EARLIEST_START_MS, latest_ms)}


def all_are_events(ranges: Mapping[str, Range], latest_ms: int) -> bool:
    """Whether the ranges of the columns tell that are_events() is true for each row."""
    for name, (least, most) in bounds(latest_ms).items():
        low, high, *_ = ranges[name]
        if low is None or high is None or low < least or high > most:
            return False
    if not all(field.nullable or ranges[field.name].nulls == 0 for field in EVENT.fields):
        return False
    partition = ranges[PARTITION]
    return bool(ranges["api"].low) and (
        partition.values == 0 or (partition.low is not None and partition.low >= 0)
    )


def are_events(rows: Rows, latest_ms: int) -> NDArray[np.bool_]:
    """Return whether each row is an event; its interval begins at `latest_ms` or before."""
    found: NDArray[np.bool_] = rows["v"] == VERSION
    found &= rows["broker"] != MISSING
    found &= (rows[PARTITION] >= 0) | (rows[PARTITION] == MISSING)
    for field in EVENT.fields:
        if isinstance(field.dataType, StringType) and not field.nullable:
            found &= rows[field.name] != NULL
    found &= rows["api"] != rows.texts["api"].index("").as_py()
    found &= _between(rows["interval_ms"], 1, LONGEST_INTERVAL_MS)
    found &= _between(rows["interval_start_ms"], EARLIEST_START_MS, latest_ms)
    for name in COUNTS:
        found &= _between(rows[name], 0, LARGEST_COUNT)
    return found


def _between(column: NDArray[Any], least: int, most: int) -> NDArray[np.bool_]:
    if len(column) and column.min() >= least and column.max() <= most:
        return np.ones(len(column), np.bool_)
    found: NDArray[np.bool_] = (column >= least) & (column <= most)
    return found
