"""Runs of equal numbers in sorted numpy arrays: where they begin, and their sums and percentiles."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipeline.transforms.totals import LARGEST

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
_MOST: Final = 1 << 62
"""The numbers that combined() returns are below it."""


def combined(columns: Sequence[Ints]) -> Ints:
    """Return a number for each row. Two rows have the same one if they are equal in all columns, and numbers
    have the order of the rows: by the first column, then by the second one, and so on.
    """
    found = np.zeros(len(columns[0]), np.int64)
    size = 1
    for column in columns:
        values, low, width = column, int(column.min()), int(column.max()) - int(column.min()) + 1
        if size * width > _MOST:
            found, size = _ranks(found)
        if size * width > _MOST:
            (values, width), low = _ranks(column), 0
        found = found * width + (values - low)
        size *= width
    return found


def _ranks(column: Ints) -> tuple[Ints, int]:
    """Return the rank of each value among the different ones, and their number."""
    different, ranks = np.unique(column, return_inverse=True)
    return ranks.astype(np.int64), len(different)


def begins_of(column: NDArray[Any]) -> Ints:
    """Return the first row of each run of equal numbers; there is at least one row."""
    return np.flatnonzero(np.concatenate(([True], column[1:] != column[:-1])))


def totals(counts: Ints, begins: Ints) -> Ints:
    """Sum counts that are not negative, by run; a larger sum is LARGEST."""
    if len(begins) == len(counts):
        return counts
    if int(counts.max()) * len(counts) <= LARGEST:
        return np.add.reduceat(counts, begins)
    exact = np.add.reduceat(counts.astype(object), begins)
    return np.minimum(exact, LARGEST).astype(np.int64)


def percentile(rates: Reals, begins: Ints, percent: int) -> Reals:
    """The percentile of each run of sorted rates, interpolated as Spark's percentile() does."""
    last = np.append(begins[1:], len(rates)) - begins - 1
    position = last * (percent / 100)
    below = np.floor(position).astype(np.int64)
    low, high = rates[begins + below], rates[begins + np.minimum(below + 1, last)]
    found: Reals = low + (position - below) * (high - low)
    return found
