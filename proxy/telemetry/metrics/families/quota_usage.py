"""The usage of each bucket as a part of its limit."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from proxy.quota.engines import ALL_BROKERS
from proxy.quota.measure.bucket_state import BucketState
from proxy.telemetry.metrics.series import MAX_SERIES, PREFIX, largest_steps
from proxy.wire.cursor import NO_PARTITION

LABELS: Final = ("quota", "user", "client_id", "ip", "topic", "partition", "broker")
FAMILY: Final = PREFIX + "quota_usage_ratio"
AT_A_TIME: Final = 50
"""Buckets that are read before the event loop may run other work; they take about a quarter of a slice."""


def quota_usage_steps(
    buckets: Iterable[tuple[int, BucketState]], note_excluded: Callable[[str, int], None]
) -> Iterator[Metric | None]:
    """Yield the family of the MAX_SERIES buckets with the highest usage, and a None wherever the event loop
    may run other work. Calls `note_excluded` with the family's name and the number of other buckets.

    The rate is compared with the whole limit, so that the values of processes that share a limit add up. For
    a limit of 0 the value is 1.
    """
    ratios: list[tuple[tuple[str, ...], float]] = []
    for number, (broker, state) in enumerate(buckets, 1):
        ratio = max(state.rate, 0.0) / state.limit if state.limit > 0 else 1.0
        ratios.append((_labels(broker, state), ratio))
        if number % AT_A_TIME == 0:
            yield None
    family = GaugeMetricFamily(
        FAMILY, "Rate of an active bucket as a part of its limit; 1 is the limit.", labels=LABELS
    )
    if len(ratios) > MAX_SERIES:
        note_excluded(FAMILY, len(ratios) - MAX_SERIES)
    largest = yield from largest_steps(ratios, kept=0)
    for labels, ratio in islice(largest.items(), MAX_SERIES):
        family.add_metric(labels, ratio)
    yield family


def _labels(broker: int, state: BucketState) -> tuple[str, ...]:
    return (
        state.quota,
        state.user,
        state.client_id,
        state.ip,
        state.topic,
        "" if state.partition == NO_PARTITION else str(state.partition),
        "" if broker == ALL_BROKERS else str(broker),
    )
