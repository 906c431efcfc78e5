"""Runs: numbers for rows, and the sums and percentiles of runs."""

import random

import numpy as np
import pytest

from pipeline.transforms.runs import begins_of, combined, percentile, totals
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


def test_a_run_begins_where_a_number_changes() -> None:
    assert begins_of(np.array([5, 5, 7, 7, 7, 5])).tolist() == [0, 2, 5]
    assert begins_of(np.array([5])).tolist() == [0]


def test_a_total_is_at_most_the_largest_number() -> None:
    counts = np.array([1 << 53] * 1025 + [1, 2, 3])
    assert totals(counts, np.array([0, 1024, 1025, 1027])).tolist() == [LARGEST, 1 << 53, 3, 3]
    assert totals(counts[-3:], np.array([0, 1])).tolist() == [1, 5]


def test_a_percentile_is_interpolated() -> None:
    rates = np.array([1.0, 2.0, 4.0, 8.0, 3.0])
    assert percentile(rates, np.array([0, 4]), 50).tolist() == [3.0, 3.0]
    assert percentile(rates, np.array([0, 4]), 99).tolist() == [pytest.approx(7.88), 3.0]
