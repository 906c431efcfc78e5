"""All families of /metrics."""

from prometheus_client.core import Metric

from proxy.quota.usage import REST
from proxy.relay.counters.traffic import Traffic
from proxy.telemetry.metrics.metrics import ProxyCollector
from proxy.telemetry.metrics.series import MAX_SERIES, NoteExcluded
from tests.support.quotas.buckets import bucket_state
from tests.support.server.listeners import FilledListener


def families_of(collector: ProxyCollector) -> dict[str, Metric]:
    return {family.name.removeprefix("quota_proxy_"): family for family in collector.collect()}


def collector_of(*listeners: FilledListener) -> ProxyCollector:
    return ProxyCollector(listeners=listeners, buckets=tuple, store=None, file_rejected=lambda: False)


def test_clients_are_added_up_over_listeners_without_brokers() -> None:
    listeners = [FilledListener(), FilledListener("second"), FilledListener("brokers", between_brokers=True)]
    for listener in listeners:
        listener.traffic.client("alice", "app").bytes_in = 7
    found = {
        tuple(sample.labels.values()): sample.value
        for sample in families_of(collector_of(*listeners))["client_bytes"].samples
        if sample.name.endswith("_total")
    }
    assert found["in", "alice", "app"] == 14


def test_families_without_a_source_are_absent() -> None:
    listener = FilledListener()
    assert "topic_partition_bytes" in families_of(collector_of(listener))
    listener.traffic = Traffic(topic_partitions=False)
    names = families_of(collector_of(listener))
    assert "topic_partition_bytes" not in names
    assert "usage_events" not in names
    assert "quota_store_reachable" not in names


def test_what_the_families_do_not_show_is_counted_in_each_scrape() -> None:
    def more(note_excluded: NoteExcluded) -> tuple[()]:
        note_excluded("quota_proxy_more", 9)
        return ()

    states = [
        bucket_state("producer_byte_rate", user=f"user-{number}", throttle_seconds=5.0)
        for number in range(MAX_SERIES + 3)
    ]
    collector = ProxyCollector(
        listeners=[],
        buckets=lambda: [(1, state) for state in states],
        store=None,
        file_rejected=lambda: False,
        more=more,
    )
    for excluded in (3, 1):
        families = families_of(collector)
        found = {s.labels["family"]: s.value for s in families["series_left_out"].samples}
        assert found == {
            "quota_proxy_more": 9,
            "quota_proxy_quota_limit": excluded,
            "quota_proxy_quota_usage_ratio": excluded,
            "quota_proxy_throttle_seconds": excluded,
            "quota_proxy_throttled_requests": excluded,
        }
        rests = [s.value for s in families["throttle_seconds"].samples if s.labels["client_id"] == REST]
        assert rests == [15.0]
        del states[-2:]
