"""Replication quotas in /metrics, in /api/quotas and in the log."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from proxy.quota.kinds.replication.state import ReplicationState, ThrottleState
from proxy.quota.kinds.replication.throttle import FOLLOWER, LEADER

PREFIX: Final = "quota_proxy_"
DOES: Final = {LEADER: "sends", FOLLOWER: "fetches"}
STATED_AT_LEAST_SECONDS: Final = 5.0
"""How long replicas have to be out of sync before a throttle is called too low: the rates of a shorter time
do not show yet whether they catch up."""


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
    sums = dict.fromkeys(state.view.nodes, 0)
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


def shown(state: ReplicationState, now: float) -> list[dict[str, object]]:
    """The rows of /api/quotas. Rows of other quotas have the first nine keys too."""
    return [
        {
            "kind": f"{side.role}.replication.throttled.rate",
            "broker": side.node_id,
            "entity": {},
            "mode": "enforce" if side.enforced else "observe",
            "limit": side.limit,
            "rate": side.rate,
            "throttled": side.omitted_replicas > 0,
            "throttled_requests": side.omitted,
            "throttle_seconds": side.throttled_seconds,
            "since_seconds": now - side.since if side.since else None,
            "replicas_behind": side.behind,
            "lag": side.lag,
            "inbound_rate": side.inbound,
            "too_low": side.too_low,
        }
        for side in state.report(now)
        if side.limited
    ]


def endless(state: ReplicationState, now: float) -> dict[tuple[str, int], str]:
    """A warning for each throttle under which replicas cannot get in sync, by role and broker."""
    return {
        (side.role, side.node_id): _too_low(side, now)
        for side in state.report(now)
        if side.too_low and now - side.since >= STATED_AT_LEAST_SECONDS
    }


def _too_low(side: ThrottleState, now: float) -> str:
    # The lag of a partition that was omitted from the start is unknown.
    lag = f"{now - side.since:.0f} s" + (f" and {side.lag} messages" if side.lag else "")
    return (
        f"broker {side.node_id} {DOES[side.role]} throttled replicas at no more than {side.limit:.0f} B/s, "
        f"but they grow by {side.inbound:.0f} B/s: {side.behind} replicas are {lag} behind "
        f"and cannot get in sync; raise {side.role}.replication.throttled.rate"
    )
