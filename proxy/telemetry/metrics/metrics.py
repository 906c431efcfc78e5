"""ProxyCollector: reads the counters when a scrape comes; requests only count."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

import proxy
from proxy.quota.measure.bucket_state import BucketState
from proxy.telemetry.metrics.families.configuration import StoreState, configuration_families
from proxy.telemetry.metrics.families.connections import connection_steps
from proxy.telemetry.metrics.families.latencies import latency_steps
from proxy.telemetry.metrics.families.partitions import partition_steps
from proxy.telemetry.metrics.families.quota_usage import quota_usage_steps
from proxy.telemetry.metrics.families.quotas import quota_steps
from proxy.telemetry.metrics.families.requests import request_families
from proxy.telemetry.metrics.families.usage_events import usage_families
from proxy.telemetry.metrics.large_families import LargeFamilies
from proxy.telemetry.metrics.listeners import MeteredListener
from proxy.telemetry.metrics.series import PREFIX, LargestCounters, NoteExcluded, Series, add, freed_steps
from proxy.telemetry.usage.sink import Sink

AT_A_TIME: Final = 50
"""Clients that are read before the event loop may run other work; they take about a quarter of a slice."""
CLIENT: Final = ("direction", "user", "client_id")


class ProxyCollector(Collector):
    """Yields all families of /metrics."""

    def __init__(
        self,
        *,
        listeners: Iterable[MeteredListener],
        buckets: Callable[[], Iterable[tuple[int, BucketState]]],
        store: StoreState | None,
        file_rejected: Callable[[], bool],
        sinks: Sequence[Sink] = (),
        more: Callable[[NoteExcluded], Iterable[Metric | None]] = lambda _: (),
    ) -> None:
        """
        buckets        the active quota buckets with their brokers' node ids
        store          None if there is no quota topic
        file_rejected  whether the current configuration file was rejected
        sinks          those of the usage events
        more           further families, with a None wherever the event loop may run other work; gets what
                       notes the number of series that a family does not show
        """
        self._listeners: Final = tuple(listeners)
        self._buckets: Final = buckets
        self._store: Final = store
        self._file_rejected: Final = file_rejected
        self._sinks: Final = sinks
        self._more: Final = more
        self._large: Final = LargeFamilies()
        self._client_bytes: Final = LargestCounters()

    def collect(self) -> Iterator[Metric]:
        return (step for step in self.steps() if step is not None)

    def steps(self) -> Iterator[Metric | None]:
        """Yield the families, and a None wherever the event loop may run other work.

        Counters change meanwhile. Only one pass may run at a time.
        """
        large = self._large
        large.begin()
        build = GaugeMetricFamily(
            PREFIX + "build_info", "Version of the proxy; always 1.", labels=("version", "compiled")
        )
        build.add_metric((proxy.__version__, str(proxy.COMPILED).lower()), 1)
        yield build
        yield from connection_steps(self._listeners)
        yield from request_families(self._listeners)
        yield from latency_steps(self._listeners)
        yield from self._clients()
        yield from quota_steps(self._buckets(), large)
        yield from quota_usage_steps(self._buckets(), large.note_excluded)
        yield from configuration_families(self._file_rejected(), self._store)
        yield from self._more(large.note_excluded)
        if self._sinks:
            yield from usage_families(self._sinks, self._listeners)
        if any(listener.traffic.topic_partitions for listener in self._listeners):
            yield from partition_steps(self._listeners, self._buckets(), large)
        yield large.excluded()

    def _clients(self) -> Iterator[Metric | None]:
        series: Series = {}
        for listener in self._listeners:
            if listener.between_brokers:
                continue
            # At one moment: a client that is added to the rest meanwhile would count twice.
            clients = [
                (user, client_id, count.bytes_in, count.bytes_out)
                for (user, client_id), count in listener.traffic.clients.items()
            ]
            for number, (user, client_id, bytes_in, bytes_out) in enumerate(clients, 1):
                add(series, ("in", user, client_id), float(bytes_in))
                add(series, ("out", user, client_id), float(bytes_out))
                if number % AT_A_TIME == 0:
                    yield None
        text = "Bytes of requests (in) and responses (out), by client."
        family = CounterMetricFamily(PREFIX + "client_bytes", text, labels=CLIENT)
        self._large.note_count("client_bytes", len(series))
        shown = yield from self._client_bytes.steps(series)
        for key, value in shown.items():
            family.add_metric(key, value)
        yield family
        yield from freed_steps(series)
