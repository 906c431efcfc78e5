"""The metrics of usage events."""

from proxy.quota.usage import UsageLedger
from proxy.telemetry.metrics.families.usage_events import usage_families
from proxy.telemetry.usage.sink import Sink
from tests.support.server.listeners import FilledListener


def test_events_and_partitions() -> None:
    sink = Sink("kafka")
    sink.delivered, sink.lost, sink.waiting = 5, 2, 3
    listeners = [FilledListener(), FilledListener("second")]
    listeners[1].usage = UsageLedger()
    found = {
        (sample.name.removeprefix("quota_proxy_"), *sample.labels.values()): sample.value
        for family in usage_families([sink], listeners)
        for sample in family.samples
    }
    assert found == {
        ("usage_events_total", "kafka", "delivered"): 5,
        ("usage_events_total", "kafka", "lost"): 2,
        ("usage_events_waiting", "kafka"): 3,
        ("usage_partitions_left_out_total", "second"): 0,
    }
