"""The families of the operating system's process, of Python and of the event loop."""

from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import HistogramMetricFamily, Metric

from proxy.telemetry.loop_lag import BOUNDS, LoopLag
from proxy.telemetry.metrics.series import PREFIX

REGISTRY: Final = CollectorRegistry(auto_describe=False)
"""The registry of prometheus_client's own families: `process_*` and `python_*`, under their usual names."""
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)


def process_families(lag: LoopLag) -> Iterator[Metric]:
    """Yield the families of this process."""
    yield from REGISTRY.collect()
    text = (
        "How late the event loop ran a timer: due every 100 ms, and at least every second while it is idle."
    )
    family = HistogramMetricFamily(PREFIX + "event_loop_lag_seconds", text)
    counted = 0
    buckets = []
    for bound, count in zip((*map(str, BOUNDS), "+Inf"), lag.counts, strict=True):
        counted += count
        buckets.append((bound, float(counted)))
    family.add_metric((), buckets, lag.total_seconds)
    yield family
