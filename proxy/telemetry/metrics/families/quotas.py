"""The metric families of client quotas: limits and throttling, by entity."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from proxy.quota.kinds.controller_mutation import CONTROLLER_MUTATION_RATE
from proxy.quota.measure.bucket_state import BucketState
from proxy.telemetry.metrics.large_families import LargeFamilies
from proxy.telemetry.metrics.series import MAX_SERIES, PREFIX, Series, add, freed_steps, largest_steps

AT_A_TIME: Final = 50
"""Buckets that are read before the event loop may run other work; they take about a quarter of a slice."""
ENTITY: Final = ("quota", "user", "client_id")
TENANT: Final = ("user", "client_id")
"""The labels of families: of quotas, and of controller mutations."""


def quota_steps(buckets: Iterable[tuple[int, BucketState]], large: LargeFamilies) -> Iterator[Metric | None]:
    """Yield the families, and a None wherever the event loop may run other work."""
    entities: dict[tuple[str, ...], tuple[int, float, float | None]] = {}
    connections: Series = {}
    mutations: dict[tuple[str, ...], tuple[float, float, float]] = {}
    for number, (_, state) in enumerate(buckets, 1):
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
    yield from _entity_steps(entities, large)
    text = "Seconds for which new connections were throttled."
    yield from large.series("connection_throttle_seconds", text, ("ip",), connections, kept=0)
    yield from _mutation_steps(mutations, large)
    yield from freed_steps(entities)
    yield from freed_steps(connections)
    yield from freed_steps(mutations)


def _entity_steps(
    entities: Mapping[tuple[str, ...], tuple[int, float, float | None]], large: LargeFamilies
) -> Iterator[Metric | None]:
    """entities: throttled requests, seconds of throttling, and the limit, None for limits of topics."""
    count = len(entities)
    requests = ((names, float(values[0])) for names, values in entities.items())
    text = "Requests that were throttled."
    yield from large.values("throttled_requests", text, ENTITY, requests, count)
    seconds = ((names, values[1]) for names, values in entities.items())
    text = "Seconds for which requests were throttled."
    yield from large.values("throttle_seconds", text, ENTITY, seconds, count)
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
    large.note_count("quota_limit", limited)
    yield family


def _mutation_steps(
    tenants: Mapping[tuple[str, ...], tuple[float, float, float]], large: LargeFamilies
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
    large.note_count("controller_mutation_rate", count)
    found = yield from largest_steps(((names, values[0]) for names, values in tenants.items()), kept=0)
    for labels, value in found.items():
        rate.add_metric(labels, value)
    yield rate
    left = GaugeMetricFamily(
        PREFIX + "controller_mutation_tokens",
        "Partitions that may be created or deleted now; below zero, none until the debt is paid.",
        labels=TENANT,
    )
    large.note_count("controller_mutation_tokens", count)
    least = yield from largest_steps(((names, -values[1]) for names, values in tenants.items()), kept=0)
    for labels, value in islice(least.items(), MAX_SERIES):
        left.add_metric(labels, -value)
    yield left
    seconds = ((names, values[2]) for names, values in tenants.items())
    text = "Seconds for which clients were throttled by their controller mutation quota."
    yield from large.values("controller_mutation_throttle_seconds", text, TENANT, seconds, count, kept=0)
