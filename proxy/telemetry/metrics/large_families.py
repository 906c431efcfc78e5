"""LargeFamilies: families of counters with any number of series, scrape after scrape."""

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from proxy.quota.usage import REST
from proxy.telemetry.metrics.series import MAX_SERIES, PREFIX, RestSums, Series, largest_steps


class LargeFamilies:
    """Shows the MAX_SERIES largest counters of each family, and the sums of the rest."""

    def __init__(self) -> None:
        self._rests: Final[dict[str, RestSums]] = {}
        """What the families have under REST, by name."""
        self._excluded: dict[str, int] = {}

    def begin(self) -> None:
        """Begin a scrape."""
        self._excluded = {}

    def note_excluded(self, family: str, count: int) -> None:
        """Note how many series of a family, by its whole name, a scrape does not show."""
        self._excluded[family] = count

    def note_count(self, name: str, count: int) -> None:
        """Note how many series a family has, by its name without PREFIX; it shows MAX_SERIES at most."""
        if count > MAX_SERIES:
            self._excluded[PREFIX + name] = count - MAX_SERIES

    def excluded(self) -> Metric:
        """Return the family of the numbers of series that the scrape does not show."""
        family = GaugeMetricFamily(
            PREFIX + "series_left_out",
            f"Series that are added up under {REST}, by family.",
            labels=("family",),
        )
        for name, count in self._excluded.items():
            family.add_metric((name,), count)
        return family

    def series(
        self, name: str, text: str, labels: tuple[str, ...], series: Series, kept: int = 1
    ) -> Iterator[Metric | None]:
        """Yield a counter, and a None wherever the event loop may run other work. `kept` is the number of
        leading labels that the sum of the rest keeps.
        """
        return self.values(name, text, labels, series.items(), len(series), kept)

    def values(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...],
        series: Iterable[tuple[tuple[str, ...], float]],
        count: int,
        kept: int = 1,
    ) -> Iterator[Metric | None]:
        """series() for `count` series that no dictionary has."""
        family = CounterMetricFamily(PREFIX + name, text, labels=labels)
        self.note_count(name, count)
        found = dict(series) if count <= MAX_SERIES else (yield from largest_steps(series, kept))
        for key, value in self._rests.setdefault(name, RestSums()).shown(found).items():
            family.add_metric(key, value)
        yield family
