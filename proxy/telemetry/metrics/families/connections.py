"""The metric families of connections: those of clients, and to brokers for them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from proxy.telemetry.metrics.listeners import MeteredListener
from proxy.telemetry.metrics.series import PREFIX

AT_A_TIME: Final = 500
"""Connections that are looked at before the event loop may run other work; they take about half a slice."""


def connection_steps(listeners: Sequence[MeteredListener]) -> Iterator[Metric | None]:
    """Yield the families, and a None wherever the event loop may run other work."""
    connections = GaugeMetricFamily(PREFIX + "connections", "Open client connections.", labels=("listener",))
    for listener in listeners:
        connections.add_metric((listener.name,), listener.connection_count)
    yield connections
    yield from _paused_steps(listeners)
    yield from _counters(listeners)
    without_port = GaugeMetricFamily(
        PREFIX + "brokers_without_port",
        "Brokers that clients cannot reach, because no port could be bound for them.",
        labels=("listener",),
    )
    rejected = CounterMetricFamily(
        PREFIX + "broker_addresses_rejected",
        "Addresses named by brokers that upstream.hosts does not allow, each time.",
        labels=("listener",),
    )
    for listener in listeners:
        without_port.add_metric((listener.name,), listener.brokers_without_port)
        rejected.add_metric((listener.name,), listener.rejected_addresses)
    yield from (without_port, rejected)


def admission_families(admitted: int, max_connections: int) -> Iterator[Metric]:
    """Yield how many client connections there are and may be, over all listeners for clients."""
    text = "Client connections that count against limits.max_connections, those that open or close included."
    yield GaugeMetricFamily(PREFIX + "admitted_connections", text, value=admitted)
    text = "Client connections that may be open: limits.max_connections, or what the open files allow."
    yield GaugeMetricFamily(PREFIX + "max_connections", text, value=max_connections)


def _paused_steps(listeners: Iterable[MeteredListener]) -> Iterator[Metric | None]:
    paused = GaugeMetricFamily(
        PREFIX + "connections_paused",
        "Open client connections that the proxy does not read from, by reason.",
        labels=("listener", "reason"),
    )
    for listener in listeners:
        counts = dict.fromkeys(listener.pause_reasons, 0)
        for number, reason in enumerate(listener.pauses(), 1):
            if reason:
                counts[reason] += 1
            if number % AT_A_TIME == 0:
                yield None
        for reason, count in counts.items():
            paused.add_metric((listener.name, reason), count)
    yield paused


def _counters(listeners: Iterable[MeteredListener]) -> Iterator[Metric]:
    closed = CounterMetricFamily(
        PREFIX + "connections_closed",
        "Client connections that ended, by reason.",
        labels=("listener", "reason"),
    )
    connects = CounterMetricFamily(
        PREFIX + "broker_connects",
        "Connections to brokers that clients needed, by outcome.",
        labels=("listener", "broker", "outcome"),
    )
    failures = CounterMetricFamily(
        PREFIX + "authentication_failures",
        "Logins that brokers rejected.",
        labels=("listener", "mechanism", "ip"),
    )
    for listener in listeners:
        name = listener.name
        for reason, count in listener.closed.items():
            closed.add_metric((name, reason), count)
        for (node_id, outcome), count in listener.broker_connects.items():
            connects.add_metric((name, str(node_id), outcome), count)
        for (mechanism, ip), count in listener.traffic.failed_logins.items():
            failures.add_metric((name, mechanism, ip), count)
    yield from (closed, connects, failures)
