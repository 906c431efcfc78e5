"""A family's values by their labels, and no more of them than a scrape can bear."""

from collections.abc import Generator
from heapq import nlargest
from operator import itemgetter
from typing import Final

from proxy.quota.usage import REST

MAX_SERIES: Final = 1000
"""Series of one family with entity or partition labels; the smallest beyond that are added up under REST."""
AT_A_TIME: Final = 2000

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
    items = list(series.items())
    largest: list[tuple[tuple[str, ...], float]] = []
    for start in range(0, len(items), AT_A_TIME):
        largest = nlargest(MAX_SERIES, largest + items[start : start + AT_A_TIME], key=itemgetter(1))
        yield
    result = dict(largest)
    shown = frozenset(result)
    for number, (key, value) in enumerate(items, 1):
        if key not in shown:
            add(result, (*key[:kept], *(REST for _ in key[kept:])), value)
        if number % AT_A_TIME == 0:
            yield
    return result
