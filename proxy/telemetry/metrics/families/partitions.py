"""The metric families of topic partitions."""

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import Metric

from proxy.quota.limits.config_keys import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE
from proxy.quota.measure.bucket_state import BucketState
from proxy.quota.usage import REST
from proxy.telemetry.metrics.large_families import LargeFamilies
from proxy.telemetry.metrics.listeners import MeteredListener
from proxy.telemetry.metrics.series import Series, add, freed_steps

AT_A_TIME: Final = 50
"""Buckets or series that are read before the event loop may run other work; they take about a quarter of a
slice."""
LABELS: Final = ("direction", "topic", "partition")
QUOTAS: Final = {PRODUCER_BYTE_RATE.name: "in", CONSUMER_BYTE_RATE.name: "out"}
"""The direction of each quota of partitions."""


def partition_steps(
    listeners: Iterable[MeteredListener],
    buckets: Iterable[tuple[int, BucketState]],
    large: LargeFamilies,
) -> Iterator[Metric | None]:
    """Yield the families, and a None wherever the event loop may run other work."""
    series: Series = {}
    for listener in listeners:
        names = listener.topic_names
        counted = listener.traffic.partitions
        names.want_names(topic_id for topic, topic_id, _ in counted if not topic)
        for number, ((topic, topic_id, partition), count) in enumerate(list(counted.items()), 1):
            # The id stands for the topic until its name is known.
            name = topic or names.topic_name(topic_id) or topic_id.hex()
            add(series, ("in", name, str(partition)), float(count.bytes_in))
            add(series, ("out", name, str(partition)), float(count.bytes_out))
            if number % AT_A_TIME == 0:
                yield None
    text = "Bytes of record batches that were produced (in) and fetched (out)."
    yield from large.series("topic_partition_bytes", text, LABELS, series)
    waits: Series = {}
    for number, key in enumerate(series, 1):
        if key[1] != REST:
            waits[key] = 0.0
        if number % AT_A_TIME == 0:
            yield None
    for number, (_, state) in enumerate(buckets, 1):
        if number % AT_A_TIME == 0:
            yield None
        direction = QUOTAS.get(state.quota)
        if direction is not None:
            add(waits, (direction, state.topic, str(state.partition)), state.throttle_seconds)
    text = "Seconds for which clients were throttled by a partition's quota."
    yield from large.series("topic_partition_throttle_seconds", text, LABELS, waits)
    yield from freed_steps(series)
    yield from freed_steps(waits)
