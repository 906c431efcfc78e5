"""The metric families of certificates."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from proxy.telemetry.metrics.series import PREFIX


def certificate_families(days_left: Mapping[str, float], ends: Mapping[str, float]) -> Iterator[Metric]:
    """Yield when each file's first certificate to expire does so: `ends` in seconds since the epoch."""
    days = GaugeMetricFamily(
        PREFIX + "certificate_days_left", "Days until a certificate expires.", labels=("file",)
    )
    for file, left in days_left.items():
        days.add_metric((file,), left)
    yield days
    text = "When a certificate expires, in seconds since the epoch."
    expires = GaugeMetricFamily(PREFIX + "certificate_expires_timestamp_seconds", text, labels=("file",))
    for file, end in ends.items():
        expires.add_metric((file,), end)
    yield expires
