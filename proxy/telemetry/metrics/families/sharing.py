"""The metric families of shared limits."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from proxy.telemetry.metrics.series import PREFIX


def sharing_families(instances: int, lag_seconds: float, degraded: bool, failures: int) -> Iterator[Metric]:
    """Yield the families of a process that shares limits with others."""
    text = "Live processes that share limits, this one included."
    yield GaugeMetricFamily(PREFIX + "instances", text, value=instances)
    text = "Age in seconds of what this process knows of the others that share limits."
    yield GaugeMetricFamily(PREFIX + "sharing_lag_seconds", text, value=lag_seconds)
    text = "Whether this process does not share limits: the topic is unavailable, or an internal error."
    yield GaugeMetricFamily(PREFIX + "sharing_degraded", text, value=float(degraded))
    text = "Internal errors while this process divided limits."
    yield CounterMetricFamily(PREFIX + "sharing_failures", text, value=failures)
