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
_LONG_RUN: Final = 8
"""Rows of a run, on average, from which on ranks are found by run."""


def combined(columns: Sequence[NDArray[Any]]) -> Ints:
    """Return a number for each row. Two rows have the same one if they are equal in all columns, and numbers
    have the order of the rows: by the first column, then by the second one, and so on.
    """
    return compact(columns, _MOST)[0]


def compact(columns: Sequence[NDArray[Any]], most: int) -> tuple[Ints, int]:
    """Return the numbers of combined(), which are not negative, and a number that they are below: at most
    `most`, unless two columns have too many different values together.
    """
    found, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low = int(column.min())
        values, width = column, int(column.max()) - low + 1
        if size * width > most:
            found, size = ranks(found)
        if size * width > most:
            (values, width), low = ranks(column), 0
        if width == 1:
            continue
        found *= width
        found += values
        if low:
            found -= low
        size *= width
    return found, size


def ranks(column: NDArray[Any]) -> tuple[Ints, int]:
    """Return the rank of each value among the different ones, and their number."""
    begins = begins_of(column)
    if len(begins) * _LONG_RUN < len(column):
        of_runs, count = ranks(column[begins])
        return np.repeat(of_runs, np.diff(begins, append=len(column))), count
    # The command's process does not wait for its import.
    import pandas as pd

    # In a hash table: there are usually much fewer different values than rows.
    places, different = pd.factorize(column)
    rank = np.empty(len(different), np.int64)
    rank[np.argsort(different)] = np.arange(len(different))
    return rank[places], len(different)


def in_order(column: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the places of the numbers, which are not negative and below `size`, in their order, and the
    numbers in this order.
    """
    bits = len(column).bit_length()
    if size << bits > _MOST:
        places = np.argsort(column)
        return places, column[places]
    # To sort numbers takes a fraction of the time that it takes to sort their places.
    both = column << bits
    both |= np.arange(len(column))
    both.sort()
    return both & ((1 << bits) - 1), both >> bits


def begins_of(column: NDArray[Any]) -> Ints:
    """Return the first row of each run of equal numbers; there is at least one row."""
    return np.flatnonzero(np.concatenate(([True], column[1:] != column[:-1])))


def totals(counts: NDArray[Any], begins: Ints) -> Ints:
    """Sum counts that are not negative, by run; a larger sum is LARGEST."""
    if len(begins) == len(counts):
        return counts.astype(np.int64, copy=False)
    if int(counts.max()) * len(counts) <= LARGEST:
        return np.add.reduceat(counts, begins, dtype=np.int64)
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
