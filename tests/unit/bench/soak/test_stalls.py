"""Gaps between acknowledgements, and percentiles."""

import pytest

from bench.soak.stalls import longest_gap, percentiles


@pytest.mark.parametrize(
    ("begin", "end", "gap"),
    [
        (0.0, 10.0, 5.0),
        (2.5, 7.5, 4.5),  # from 3.0 to 7.5: what follows is not of this restart
        (4.0, 6.0, 2.0),  # nothing in between
        (8.5, 12.0, 3.0),
    ],
)
def test_the_longest_gap(begin: float, end: float, gap: float) -> None:
    assert longest_gap([1.0, 2.0, 3.0, 8.0, 9.0], begin, end) == gap


def test_without_acknowledgements() -> None:
    assert longest_gap([], 1.0, 3.0) == 2.0


def test_percentiles() -> None:
    values = [number / 1000 for number in range(1, 102)]
    assert percentiles(values) == {"p50": 0.051, "p90": 0.091, "p99": 0.1, "max": 0.101}
    assert percentiles([]) == {}
