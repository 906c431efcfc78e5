"""Latencies: histograms of times, by API; fixed arrays of integers that a scrape reads."""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.usage import API_KEYS
from proxy.relay.counters.count import Count

BOUNDS: Final = 16
"""Each bound is twice the one before: so the bucket of a time needs no search."""
TOLERANCE: Final = 0.001
"""In units of the first bound. A time on a bound belongs below it, but differences of doubles are not
exact.
"""


@final
class Histogram:
    """Times by size. Bucket n has those of at most 2^n units, and the last one all longer times."""

    __slots__ = ("_per_second", "_unit_us", "counts", "total_seconds")

    def __init__(self, unit_us: int) -> None:
        """`unit_us`: the first bound, in microseconds."""
        self._unit_us: Final = unit_us
        self._per_second: Final = 1e6 / unit_us
        self.counts: Final = [Count() for _ in range(BOUNDS + 1)]
        self.total_seconds = 0.0

    def note(self, seconds: float) -> None:
        """Count a time. Clocks that are read late may make it negative: then it counts as 0."""
        if seconds < 0.0:
            seconds = 0.0
        self.total_seconds += seconds
        scaled = seconds * self._per_second - TOLERANCE
        bucket: native = 0
        if scaled >= 1.0:  # most times are shorter
            units: native = int(scaled)
            while units > 0 and bucket < BOUNDS:
                units >>= 1
                bucket += 1
        self.counts[bucket].value += 1

    @property
    def bounds(self) -> list[float]:
        """The upper bounds of all buckets but the last, in seconds."""
        return [self._unit_us * 2**bucket / 1e6 for bucket in range(BOUNDS)]

    @property
    def cumulative(self) -> list[int]:
        """The number of times up to each bound, and in all."""
        found: list[int] = []
        below = 0
        for count in self.counts:
            below += count.value
            found.append(below)
        return found


@final
class Latencies:
    """A histogram for each API that has been used."""

    def __init__(self, unit_us: int) -> None:
        self._unit_us: Final = unit_us
        self._by_api: Final[list[Histogram | None]] = [None] * API_KEYS

    def note(self, api_key: native, seconds: float) -> None:
        """Count a time, in seconds. All unknown APIs count as one."""
        key: native = api_key
        if key < 0 or key >= API_KEYS:
            key = API_KEYS - 1
        histogram = self._by_api[key]
        if histogram is None:
            histogram = self._by_api[key] = Histogram(self._unit_us)
        histogram.note(seconds)

    def used(self) -> list[tuple[int, Histogram]]:
        """The histograms by API key; the last key is for all unknown APIs."""
        return [(key, each) for key, each in enumerate(self._by_api) if each is not None]
