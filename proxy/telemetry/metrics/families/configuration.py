"""The metric families of the configuration file, and of the quota topic."""

from collections.abc import Iterator
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from proxy.store.skipped_records import SkippedRecords
from proxy.telemetry.metrics.series import PREFIX


class StoreState(Protocol):
    """The state of the quota topic, which has the quotas that tools set."""

    problem: str
    """Why the topic cannot be read; empty if it can."""
    lag: int
    """Records that are not read yet."""

    @property
    def skipped(self) -> SkippedRecords:
        """The records that cannot be read or applied."""


def configuration_families(file_rejected: bool, store: StoreState | None) -> Iterator[Metric]:
    """Yield the families.

    file_rejected  whether the current configuration file was rejected
    store          None if there is no quota topic
    """
    text = "Whether the current configuration file is in force."
    taken = 0.0 if file_rejected else 1.0
    yield GaugeMetricFamily(PREFIX + "config_last_reload_successful", text, value=taken)
    if store is not None:
        text = "Whether the quota topic can be read and written."
        yield GaugeMetricFamily(PREFIX + "quota_store_reachable", text, value=float(not store.problem))
        text = "Records of the quota topic that were not in force at the last check."
        yield GaugeMetricFamily(PREFIX + "quota_store_lag", text, value=store.lag)
        text = "Records of the quota topic that the proxy could not read or apply."
        skipped = store.skipped
        yield CounterMetricFamily(PREFIX + "quota_store_skipped_records", text, value=skipped.total)
        text = "Skipped records of the quota topic that no later record has superseded."
        yield GaugeMetricFamily(PREFIX + "quota_store_broken_records", text, value=skipped.current)
