"""Series: a family's values by label values, limited to a number that a scrape can bear."""

from collections.abc import Generator
from heapq import heapify, heappushpop
from itertools import islice
from typing import Final

from proxy.quota.usage import REST

MAX_SERIES: Final = 1000
"""Series of one family with entity or partition labels. Prometheus stores each for hours, so labels that
clients can invent have to be bounded; the smallest series beyond are added up under REST."""
AT_A_TIME: Final = 200
"""Series that are sorted in one step; they take well under a slice."""

Series = dict[tuple[str, ...], float]


def add(series: Series, key: tuple[str, ...], value: float) -> None:
    series[key] = series.get(key, 0) + value


def bounded(series: Series, kept: int = 1) -> Series:
    """Return the MAX_SERIES largest values, and the sums of the rest.

    The sums keep the first `kept` labels; their other labels are REST.
    """
    steps = bounded_steps(series, kept)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Series = end.value
            return result


def bounded_steps(series: Series, kept: int = 1) -> Generator[None, None, Series]:
    """bounded() as a generator that yields after every AT_A_TIME series; `series` must not change
    meanwhile.
    """
    if len(series) <= MAX_SERIES:
        return series
    entries = enumerate(series.items(), 1)
    # The number keeps the first of equal values, and keeps heapq from comparing keys.
    largest = [(value, -number, key) for number, (key, value) in islice(entries, MAX_SERIES)]
    heapify(largest)
    rest: Series = {}
    for number, (key, value) in entries:
        smallest, _, left_out = heappushpop(largest, (value, -number, key))
        add(rest, (*left_out[:kept], *(REST for _ in left_out[kept:])), smallest)
        if number % AT_A_TIME == 0:
            yield
    result = {key: value for value, _, key in sorted(largest, reverse=True)}
    for key, value in rest.items():
        add(result, key, value)
    return result
