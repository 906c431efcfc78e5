"""Runs: numbers for rows, and the sums and percentiles of runs."""

import random

import numpy as np
import pytest

from pipeline.transforms.runs import begins_of, combined, compact, in_order, percentile, ranks, totals
from pipeline.transforms.totals import LARGEST

SMALLEST = -(1 << 63)


@pytest.mark.parametrize("bits", [2, 20, 40, 64])
def test_rows_have_the_numbers_of_their_order(bits: int) -> None:
    """Also if the columns together have more bits than a number."""
    source = random.Random(bits)
    some = [source.randrange(1 << bits) + SMALLEST for _ in range(5)] + [SMALLEST, LARGEST][: bits // 40]
    rows = [tuple(source.choice(some) for _ in range(4)) for _ in range(300)]
    numbers = combined([np.array(column, np.int64) for column in zip(*rows, strict=True)]).tolist()
    assert sorted(zip(numbers, rows, strict=True)) == sorted(
        zip(numbers, rows, strict=True), key=lambda row: row[1]
    )
    assert len(set(numbers)) == len(set(rows))


@pytest.mark.parametrize("most", [2, 1 << 10, 1 << 40])
def test_numbers_are_as_small_as_possible(most: int) -> None:
    """`most` is exceeded only if two columns have too many different values together."""
    source = random.Random(most)
    columns = [np.array(source.choices([3, 1 << 30, 5], k=300), kind) for kind in (np.int32, np.int64)]
    numbers, size = compact([*columns, np.full(300, -1, np.int8)], most)
    assert 0 <= numbers.min() <= numbers.max() < size <= max(most, 9)
    assert (np.argsort(numbers, kind="stable") == np.lexsort(columns[::-1])).all()


@pytest.mark.parametrize("run", [1, 9])
def test_ranks_have_the_order_of_the_numbers(run: int) -> None:
    found, count = ranks(np.repeat([70, -5, 70, 8, SMALLEST], run))
    assert (found.tolist(), count) == (np.repeat([3, 1, 3, 2, 0], run).tolist(), 4)


@pytest.mark.parametrize("size", [8, 1 << 61])
def test_numbers_in_their_order(size: int) -> None:
    places, numbers = in_order(np.array([7, 0, size - 1, 3]), size)
    assert numbers.tolist() == sorted([7, 0, size - 1, 3])
    assert np.array([7, 0, size - 1, 3])[places].tolist() == numbers.tolist()
    assert sorted(places) == [0, 1, 2, 3]


def test_a_run_begins_where_a_number_changes() -> None:
    assert begins_of(np.array([5, 5, 7, 7, 7, 5])).tolist() == [0, 2, 5]
    assert begins_of(np.array([5])).tolist() == [0]


def test_a_total_is_at_most_the_largest_number() -> None:
    counts = np.array([1 << 53] * 1025 + [1, 2, 3])
    assert totals(counts, np.array([0, 1024, 1025, 1027])).tolist() == [LARGEST, 1 << 53, 3, 3]
    assert totals(counts[-3:], np.array([0, 1])).tolist() == [1, 5]
    assert totals(np.full(9, 127, np.int8), np.array([0, 2])).tolist() == [254, 889]


def test_a_percentile_is_interpolated() -> None:
    rates = np.array([1.0, 2.0, 4.0, 8.0, 3.0])
    assert percentile(rates, np.array([0, 4]), 50).tolist() == [3.0, 3.0]
    assert percentile(rates, np.array([0, 4]), 99).tolist() == [pytest.approx(7.88), 3.0]
