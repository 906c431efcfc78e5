"""Replication quotas in /metrics."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from proxy.quota.kinds.replication.state import ReplicationState, ThrottleState
from proxy.telemetry.replication import DOES

PREFIX: Final = "quota_proxy_"


def replication_families(
    state: ReplicationState | None, lags: Iterable[tuple[int, int]], now: float
) -> Iterator[Metric | None]:
    """Yield the families, and a None wherever the event loop may run other work.

    Among them are Kafka's LeaderReplicationThrottledRate, FollowerReplicationThrottledRate and SumReplicaLag.
    `state` is None without a replication listener. `lags` has, for each connection of a follower, its node id
    and how many messages its replicas lack.
    """
    if state is None:
        return
    sides = state.report(now)
    for role, does in DOES.items():
        yield from _rates(role, does, [side for side in sides if side.role == role])
    yield _by_role(
        CounterMetricFamily,
        "replication_omitted_partitions",
        "Partitions that were omitted from fetches.",
        sides,
        lambda side: side.omitted,
    )
    yield _by_role(
        GaugeMetricFamily,
        "replication_throttle_limit",
        "Limit of the replication of throttled replicas, in bytes per second.",
        [side for side in sides if side.limited],
        lambda side: side.limit,
    )
    yield _by_role(
        GaugeMetricFamily,
        "replication_replicas_behind",
        "Throttled replicas that are out of sync.",
        sides,
        lambda side: side.behind,
    )
    text = "Estimated bytes per second by which throttled partitions grow."
    yield _by_role(GaugeMetricFamily, "replication_inbound_rate", text, sides, lambda side: side.inbound)
    text = "Whether throttled replicas cannot get in sync, because they grow faster than they are fetched."
    yield _by_role(
        GaugeMetricFamily, "replication_throttle_too_low", text, sides, lambda side: float(side.too_low)
    )
    yield from _lag(state.view.nodes, lags)


def _lag(nodes: Iterable[int], lags: Iterable[tuple[int, int]]) -> Iterator[Metric | None]:
    sums = dict.fromkeys(nodes, 0)
    for node_id, messages in lags:
        sums[node_id] = sums.get(node_id, 0) + messages
        yield None
    text = "Messages that a broker's replicas lack, throttled or not."
    lag = GaugeMetricFamily(PREFIX + "replica_lag", text, labels=("broker",))
    for node_id, messages in sums.items():
        lag.add_metric((str(node_id),), messages)
    yield lag


def _rates(role: str, does: str, sides: list[ThrottleState]) -> Iterator[Metric]:
    name = f"{PREFIX}{role}_replication_throttled"
    sizes = CounterMetricFamily(
        f"{name}_bytes", f"Bytes that a broker {does} of throttled replicas.", labels=("broker",)
    )
    rates = GaugeMetricFamily(
        f"{name}_rate", f"Bytes per second that a broker {does} of throttled replicas.", labels=("broker",)
    )
    for side in sides:
        sizes.add_metric((str(side.node_id),), side.total_bytes)
        rates.add_metric((str(side.node_id),), side.rate)
    yield from (sizes, rates)


def _by_role(
    family: type[CounterMetricFamily] | type[GaugeMetricFamily],
    name: str,
    text: str,
    sides: list[ThrottleState],
    value: Callable[[ThrottleState], float],
) -> Metric:
    metric = family(PREFIX + name, text, labels=("broker", "role"))
    for side in sides:
        metric.add_metric((str(side.node_id), side.role), value(side))
    return metric
