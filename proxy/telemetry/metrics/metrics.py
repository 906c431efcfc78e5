"""ProxyCollector: reads the counters when a scrape comes; requests only count."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

import proxy
from proxy.quota.kinds.controller_mutation import CONTROLLER_MUTATION_RATE
from proxy.quota.limits.config_keys import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE
from proxy.quota.measure.bucket_state import BucketState
from proxy.quota.usage import REST
from proxy.store.skipped_records import SkippedRecords
from proxy.telemetry.metrics.connections import connection_steps
from proxy.telemetry.metrics.latencies import latency_steps
from proxy.telemetry.metrics.listeners import MeteredListener
from proxy.telemetry.metrics.quota_usage import quota_usage_steps
from proxy.telemetry.metrics.requests import request_families
from proxy.telemetry.metrics.series import (
    MAX_SERIES,
    PREFIX,
    LargestCounters,
    NoteExcluded,
    RestSums,
    Series,
    add,
    freed_steps,
    largest_steps,
)
from proxy.telemetry.usage.sink import Sink

AT_A_TIME: Final = 50
"""Buckets or series that are read before the event loop may run other work; they take about a quarter of a
slice."""
ENTITY: Final = ("quota", "user", "client_id")
CLIENT: Final = ("direction", "user", "client_id")
PARTITION: Final = ("direction", "topic", "partition")
TENANT: Final = ("user", "client_id")
"""The labels of families: of quotas, of clients, of partitions, and of controller mutations."""
PARTITION_QUOTAS: Final = {PRODUCER_BYTE_RATE.name: "in", CONSUMER_BYTE_RATE.name: "out"}
"""The direction of each quota of partitions."""


class StoreState(Protocol):
    """The state of the topic that keeps the quotas set with Kafka's tools."""

    problem: str
    """Why the topic cannot be read; empty if it can."""
    lag: int
    """Records that are not read yet."""

    @property
    def skipped(self) -> SkippedRecords:
        """The records that cannot be read or applied."""


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
        store          None if no topic keeps quotas
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
        self._excluded: dict[str, int] = {}
        self._client_bytes: Final = LargestCounters()
        self._rests: Final[dict[str, RestSums]] = {}
        """What the other families of counters have under REST, by name."""

    def collect(self) -> Iterator[Metric]:
        return (step for step in self.steps() if step is not None)

    def steps(self) -> Iterator[Metric | None]:
        """Yield the families, and a None wherever the event loop may run other work.

        Counters change meanwhile. Only one pass may run at a time.
        """
        self._excluded = {}
        build = GaugeMetricFamily(
            PREFIX + "build_info", "Version of the proxy; always 1.", labels=("version", "compiled")
        )
        build.add_metric((proxy.__version__, str(proxy.COMPILED).lower()), 1)
        yield build
        yield from connection_steps(self._listeners)
        yield from request_families(self._listeners)
        yield from latency_steps(self._listeners)
        yield from self._clients()
        yield from self._quotas()
        yield from quota_usage_steps(self._buckets(), self._excluded.__setitem__)
        yield from self._configuration()
        yield from self._more(self._excluded.__setitem__)
        if self._sinks:
            yield from self._usage()
        if any(listener.traffic.topic_partitions for listener in self._listeners):
            yield from self._partitions()
        excluded = GaugeMetricFamily(
            PREFIX + "series_left_out",
            f"Series that are added up under {REST}, by family.",
            labels=("family",),
        )
        for family, count in self._excluded.items():
            excluded.add_metric((family,), count)
        yield excluded

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
        self._note("client_bytes", series)
        shown = yield from self._client_bytes.steps(series)
        for key, value in shown.items():
            family.add_metric(key, value)
        yield family
        yield from freed_steps(series)

    def _quotas(self) -> Iterator[Metric | None]:
        entities: dict[tuple[str, ...], tuple[int, float, float | None]] = {}
        connections: Series = {}
        mutations: dict[tuple[str, ...], tuple[float, float, float]] = {}
        for number, (_, state) in enumerate(self._buckets(), 1):
            if number % AT_A_TIME == 0:
                yield None
            if state.ip:
                add(connections, (state.ip,), state.throttle_seconds)
                continue
            entity = (state.quota, state.user, state.client_id)
            requests, seconds, limit = entities.get(entity, (0, 0.0, None))
            requests += state.throttled_requests
            seconds += state.throttle_seconds
            # The families have no topic label; /api/quotas has the limits of topics.
            entities[entity] = (requests, seconds, limit if state.topic else state.limit)
            if state.quota == CONTROLLER_MUTATION_RATE and not state.topic:
                # Permits that are returned late are subtracted from a rate that no longer contains them.
                rate = max(state.rate, 0.0)
                mutations[entity[1:]] = (rate, state.tokens or 0.0, state.throttle_seconds)
        yield from self._entities(entities)
        text = "Seconds for which new connections were throttled."
        yield from self._large("connection_throttle_seconds", text, ("ip",), connections, kept=0)
        yield from self._mutations(mutations)
        yield from freed_steps(entities)
        yield from freed_steps(connections)
        yield from freed_steps(mutations)

    def _entities(
        self, entities: Mapping[tuple[str, ...], tuple[int, float, float | None]]
    ) -> Iterator[Metric | None]:
        """entities: throttled requests, seconds of throttling, and the limit, None for limits of topics."""
        count = len(entities)
        requests = ((names, float(values[0])) for names, values in entities.items())
        text = "Requests that were throttled."
        yield from self._largest("throttled_requests", text, ENTITY, requests, count)
        seconds = ((names, values[1]) for names, values in entities.items())
        text = "Seconds for which requests were throttled."
        yield from self._largest("throttle_seconds", text, ENTITY, seconds, count)
        family = GaugeMetricFamily(
            PREFIX + "quota_limit", "Limit of an active bucket, per second.", labels=ENTITY
        )
        limited = 0
        for number, (names, (_, _, limit)) in enumerate(entities.items(), 1):
            if limit is not None:
                limited += 1
                if limited <= MAX_SERIES:
                    family.add_metric(names, limit)
            if number % AT_A_TIME == 0:
                yield None
        self._note_count("quota_limit", limited)
        yield family

    def _mutations(
        self, tenants: Mapping[tuple[str, ...], tuple[float, float, float]]
    ) -> Iterator[Metric | None]:
        """The controller mutation quota, with the names of Kafka's own metrics.

        tenants: rate, tokens, and seconds of throttling.
        """
        count = len(tenants)
        rate = GaugeMetricFamily(
            PREFIX + "controller_mutation_rate",
            "Partitions created and deleted per second.",
            labels=TENANT,
        )
        self._note_count("controller_mutation_rate", count)
        found = yield from largest_steps(((names, values[0]) for names, values in tenants.items()), kept=0)
        for labels, value in found.items():
            rate.add_metric(labels, value)
        yield rate
        left = GaugeMetricFamily(
            PREFIX + "controller_mutation_tokens",
            "Partitions that may be created or deleted now; below zero, none until the debt is paid.",
            labels=TENANT,
        )
        self._note_count("controller_mutation_tokens", count)
        least = yield from largest_steps(((names, -values[1]) for names, values in tenants.items()), kept=0)
        for labels, value in islice(least.items(), MAX_SERIES):
            left.add_metric(labels, -value)
        yield left
        seconds = ((names, values[2]) for names, values in tenants.items())
        text = "Seconds for which clients were throttled by their controller mutation quota."
        yield from self._largest("controller_mutation_throttle_seconds", text, TENANT, seconds, count, kept=0)

    def _configuration(self) -> Iterator[Metric]:
        text = "Whether the current configuration file is in force."
        taken = 0.0 if self._file_rejected() else 1.0
        yield GaugeMetricFamily(PREFIX + "config_last_reload_successful", text, value=taken)
        state = self._store
        if state is not None:
            text = "Whether the topic that keeps quotas can be read and written."
            yield GaugeMetricFamily(PREFIX + "quota_store_reachable", text, value=float(not state.problem))
            text = "Records in the topic that keeps quotas that were not in force at the last check."
            yield GaugeMetricFamily(PREFIX + "quota_store_lag", text, value=state.lag)
            text = "Records of the topic that keeps quotas that the proxy could not read or apply."
            skipped = state.skipped
            yield CounterMetricFamily(PREFIX + "quota_store_skipped_records", text, value=skipped.total)
            text = "Skipped records of the topic that keeps quotas that no later record has superseded."
            yield GaugeMetricFamily(PREFIX + "quota_store_broken_records", text, value=skipped.current)

    def _usage(self) -> Iterator[Metric]:
        text = "Usage events that a sink has delivered or lost."
        events = CounterMetricFamily(PREFIX + "usage_events", text, labels=("sink", "outcome"))
        text = "Usage events that wait for delivery."
        waiting = GaugeMetricFamily(PREFIX + "usage_events_waiting", text, labels=("sink",))
        for sink in self._sinks:
            events.add_metric((sink.name, "delivered"), sink.delivered)
            events.add_metric((sink.name, "lost"), sink.lost)
            waiting.add_metric((sink.name,), sink.waiting)
        text = (
            f"Partitions of messages that usage events sum up under {REST}, because an interval had too many."
        )
        excluded = CounterMetricFamily(PREFIX + "usage_partitions_left_out", text, labels=("listener",))
        for listener in self._listeners:
            if listener.usage is not None:
                excluded.add_metric((listener.name,), listener.usage.excluded)
        yield from (events, waiting, excluded)

    def _partitions(self) -> Iterator[Metric | None]:
        series: Series = {}
        for listener in self._listeners:
            names = listener.topic_names
            counted = listener.traffic.partitions
            names.want_names(topic_id for topic, topic_id, _ in counted if not topic)
            for number, ((topic, topic_id, partition), count) in enumerate(list(counted.items()), 1):
                # The id stands for the topic until its name is known.
                name = topic or names.topic_name(topic_id) or topic_id.hex()
                add(series, ("in", name, str(partition)), float(count.bytes_in))
                add(series, ("out", name, str(partition)), float(count.bytes_out))
                if number % AT_A_TIME == 0:
                    yield None
        text = "Bytes of record batches that were produced (in) and fetched (out)."
        yield from self._large("topic_partition_bytes", text, PARTITION, series)
        waits: Series = {}
        for number, key in enumerate(series, 1):
            if key[1] != REST:
                waits[key] = 0.0
            if number % AT_A_TIME == 0:
                yield None
        for number, (_, state) in enumerate(self._buckets(), 1):
            if number % AT_A_TIME == 0:
                yield None
            direction = PARTITION_QUOTAS.get(state.quota)
            if direction is not None:
                add(waits, (direction, state.topic, str(state.partition)), state.throttle_seconds)
        text = "Seconds for which clients were throttled by a partition's quota."
        yield from self._large("topic_partition_throttle_seconds", text, PARTITION, waits)
        yield from freed_steps(series)
        yield from freed_steps(waits)

    def _large(
        self, name: str, text: str, labels: tuple[str, ...], series: Series, kept: int = 1
    ) -> Iterator[Metric | None]:
        """A counter with any number of series. `kept` is the number of leading labels that the sum of the
        rest keeps.
        """
        return self._largest(name, text, labels, series.items(), len(series), kept)

    def _largest(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...],
        series: Iterable[tuple[tuple[str, ...], float]],
        count: int,
        kept: int = 1,
    ) -> Iterator[Metric | None]:
        """_large() for `count` series that no dictionary has."""
        family = CounterMetricFamily(PREFIX + name, text, labels=labels)
        self._note_count(name, count)
        found = dict(series) if count <= MAX_SERIES else (yield from largest_steps(series, kept))
        for key, value in self._rests.setdefault(name, RestSums()).shown(found).items():
            family.add_metric(key, value)
        yield family

    def _note(self, family: str, series: Mapping[tuple[str, ...], float]) -> None:
        self._note_count(family, len(series))

    def _note_count(self, family: str, count: int) -> None:
        if count > MAX_SERIES:
            self._excluded[PREFIX + family] = count - MAX_SERIES
