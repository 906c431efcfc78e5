"""The metrics of topic partitions."""

from proxy.telemetry.metrics.families.partitions import partition_steps
from proxy.telemetry.metrics.large_families import LargeFamilies
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item
from tests.support.quotas.buckets import bucket_state
from tests.support.server.listeners import ID, OTHER_ID, FilledListener


def test_partitions_that_requests_name_by_id_have_the_topic_s_name_or_the_id() -> None:
    listener = FilledListener()
    items = [Item("named", NO_ID, 0, 1), Item("", ID, 1, 2), Item("", OTHER_ID, 2, 4)]
    listener.traffic.count_in(items)
    throttled = bucket_state("producer.byte.rate", topic="by-id", partition=1, throttle_seconds=1.5)
    families = {
        family.name.removeprefix("quota_proxy_"): {
            (sample.labels["topic"], sample.labels["partition"]): sample.value
            for sample in family.samples
            if sample.labels["direction"] == "in"
        }
        for family in partition_steps([listener], [(1, throttled)], LargeFamilies())
        if family is not None
    }
    named, by_id, unknown = ("named", "0"), ("by-id", "1"), (OTHER_ID.hex(), "2")
    assert families == {
        "topic_partition_bytes": {named: 1, by_id: 2, unknown: 4},
        "topic_partition_throttle_seconds": {named: 0, by_id: 1.5, unknown: 0},
    }
    assert listener.topic_names.wanted == {ID, OTHER_ID}
