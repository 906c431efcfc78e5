"""A family's values by their labels, and no more of them than a scrape can bear."""

from collections.abc import Generator
from heapq import heapify, heappushpop
from itertools import islice
from typing import Final

from proxy.quota.usage import REST

MAX_SERIES: Final = 1000
"""Series of one family with entity or partition labels; the smallest beyond that are added up under REST."""
AT_A_TIME: Final = 200

Series = dict[tuple[str, ...], float]


def add(series: Series, key: tuple[str, ...], value: float) -> None:
    series[key] = series.get(key, 0) + value


def bounded(series: Series, kept: int = 1) -> Series:
    """The largest MAX_SERIES, and the rest added up by the `kept` first labels, with REST for the others."""
    steps = bounded_steps(series, kept)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Series = end.value
            return result


def bounded_steps(series: Series, kept: int = 1) -> Generator[None, None, Series]:
    """bounded(), which gives way after every AT_A_TIME of many series. `series` does not change meanwhile."""
    if len(series) <= MAX_SERIES:
        return series
    entries = enumerate(series.items(), 1)
    # Of equal values the first are kept, whatever their keys are.
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
