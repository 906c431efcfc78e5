"""Series: a family's values by label values, limited to a number that a scrape can bear."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from heapq import heapify, heappushpop
from itertools import islice
from typing import Final, TypeVar

from proxy.quota.usage import REST

PREFIX: Final = "quota_proxy_"
"""The prefix of the names of all families."""
MAX_SERIES: Final = 1000
"""Series of one family with entity or partition labels. Prometheus stores each for hours, so labels that
clients can invent have to be bounded; the smallest series beyond are added up under REST."""
AT_A_TIME: Final = 200
"""Series that are sorted in one step; they take well under a slice."""

HALF_LIFE_SECONDS: Final = 3600.0
"""After so long without growth, a counter counts half in the choice of those that are shown."""
STAYS: Final = 2.0
"""A counter is replaced by one that grows more than this many times as much: those of about the same size do
not take turns."""

Series = dict[tuple[str, ...], float]
"""The values of a family, by the values of its labels."""
NoteExcluded = Callable[[str, int], None]
"""Takes a family's name and the number of its series that are added up under REST."""
Key = TypeVar("Key")
Value = TypeVar("Value")


def add(series: Series, key: tuple[str, ...], value: float) -> None:
    """Add to the value of a series, which begins at 0."""
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
    return (yield from largest_steps(series.items(), kept))


def largest_steps(
    series: Iterable[tuple[tuple[str, ...], float]], kept: int = 1
) -> Generator[None, None, Series]:
    """bounded_steps() for any values by key, the largest first."""
    entries = enumerate(series, 1)
    # The number keeps the first of equal values, and keeps heapq from comparing keys.
    largest = [(value, -number, key) for number, (key, value) in islice(entries, MAX_SERIES)]
    heapify(largest)
    rest: Series = {}
    for number, (key, value) in entries:
        smallest, _, excluded = heappushpop(largest, (value, -number, key))
        add(rest, (*excluded[:kept], *(REST for _ in excluded[kept:])), smallest)
        if number % AT_A_TIME == 0:
            yield
    result = {key: value for value, _, key in sorted(largest, reverse=True)}
    for key, value in rest.items():
        add(result, key, value)
    return result


def freed_steps(series: dict[Key, Value]) -> Iterator[None]:
    """Empty a large dictionary in steps. To free it at once takes milliseconds."""
    while series:
        for _ in range(min(AT_A_TIME, len(series))):
            series.popitem()
        yield


class RestSums:
    """The sums under REST of a family of counters, scrape after scrape.

    A sum never decreases, although a bucket that is idle for an hour is dropped with its counters. Prometheus
    would take that for a reset, and count the whole sum again.
    """

    def __init__(self) -> None:
        self._last: Series = {}
        """The sums of the last scrape."""
        self._shown: Series = {}

    def shown(self, found: Series) -> Series:
        """Return what a scrape shows, of the largest counters and the sums of the rest."""
        rest = {key: value for key, value in found.items() if key[-1] == REST}
        for key, value in rest.items():
            add(self._shown, key, max(value - self._last.get(key, 0.0), 0.0))
        self._last = rest
        return found | self._shown


class LargestCounters:
    """The MAX_SERIES counters of a family that grow most, scrape after scrape, and the sums of the rest.

    No counter decreases, and the values of a scrape add up to those of `series`. When a counter is shown for
    the first time, what it had under REST stays there. When it is no longer shown, its value is added to
    REST.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock: Final = clock
        self._scraped_at = clock()
        self._growth: dict[tuple[str, ...], float] = {}
        """How much each counter has grown; what is HALF_LIFE_SECONDS old counts half."""
        self._hidden: Series = {}
        """The values of counters that the last scrape had under REST."""
        self._shown: dict[tuple[str, ...], tuple[float, float]] = {}
        """For each counter that is shown: how much of its value is under REST, and the value."""
        self._rest: Series = {}

    def steps(self, series: Series) -> Generator[None, None, Series]:
        """Return what a scrape shows; the first label is kept, the others are REST. Yields like
        bounded_steps().
        """
        rest: Series = {}
        counted: Series = {}
        for number, (key, value) in enumerate(series.items(), 1):
            if key[-1] == REST:
                add(rest, key, value)
            else:
                counted[key] = value
            if number % AT_A_TIME == 0:
                yield
        chosen = yield from self._chosen(counted)
        hidden: Series = {}
        shown: dict[tuple[str, ...], tuple[float, float]] = {}
        for number, (key, value) in enumerate(counted.items(), 1):
            if chosen is None or key in chosen:
                shown[key] = (self._before(key, value), value)
                add(rest, _rest(key), shown[key][0])
            else:
                hidden[key] = value
                add(rest, _rest(key), value)
            if number % AT_A_TIME == 0:
                yield
        self._hidden, self._shown = hidden, shown
        self._rest = {key: max(value, self._rest.get(key, 0.0)) for key, value in rest.items()}
        found = {key: value - before for key, (before, value) in shown.items()}
        return found | {key: value for key, value in self._rest.items() if value > 0}

    def _chosen(self, counted: Series) -> Generator[None, None, Series | None]:
        """Return the counters to be shown, or None for all."""
        now = self._clock()
        left = 0.5 ** ((now - self._scraped_at) / HALF_LIFE_SECONDS)
        self._scraped_at = now
        growth: Series = {}
        ranks: Series = {}
        for number, (key, value) in enumerate(counted.items(), 1):
            last = self._shown[key][1] if key in self._shown else self._hidden.get(key, 0.0)
            grown = value - last if value >= last else value
            growth[key] = self._growth.get(key, 0.0) * left + grown
            ranks[key] = growth[key] * STAYS if key in self._shown else growth[key]
            if number % AT_A_TIME == 0:
                yield
        self._growth = growth
        return None if len(counted) <= MAX_SERIES else (yield from bounded_steps(ranks))

    def _before(self, key: tuple[str, ...], value: float) -> float:
        """How much of a shown counter's value is under REST."""
        if key in self._shown:
            before, last = self._shown[key]
        else:
            before = last = self._hidden.get(key, 0.0)
        # A smaller value means that the counter was reset: its earlier value was added to the rest.
        return before if value >= last else 0.0


def _rest(key: tuple[str, ...]) -> tuple[str, ...]:
    return (key[0], *(REST for _ in key[1:]))
