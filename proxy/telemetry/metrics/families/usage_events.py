"""The metric families of usage events."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from proxy.quota.usage import REST
from proxy.telemetry.metrics.listeners import MeteredListener
from proxy.telemetry.metrics.series import PREFIX
from proxy.telemetry.usage.sink import Sink


def usage_families(sinks: Iterable[Sink], listeners: Iterable[MeteredListener]) -> Iterator[Metric]:
    """Yield the families."""
    text = "Usage events that a sink has delivered or lost."
    events = CounterMetricFamily(PREFIX + "usage_events", text, labels=("sink", "outcome"))
    text = "Usage events that wait for delivery."
    waiting = GaugeMetricFamily(PREFIX + "usage_events_waiting", text, labels=("sink",))
    for sink in sinks:
        events.add_metric((sink.name, "delivered"), sink.delivered)
        events.add_metric((sink.name, "lost"), sink.lost)
        waiting.add_metric((sink.name,), sink.waiting)
    text = f"Partitions of messages that usage events sum up under {REST}, because an interval had too many."
    excluded = CounterMetricFamily(PREFIX + "usage_partitions_left_out", text, labels=("listener",))
    for listener in listeners:
        if listener.usage is not None:
            excluded.add_metric((listener.name,), listener.usage.excluded)
    yield from (events, waiting, excluded)
