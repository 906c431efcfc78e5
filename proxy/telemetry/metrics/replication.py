"""Replication: what /metrics and /api/quotas show of replication quotas."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from proxy.quota.kinds.replication.state import ReplicationState, ThrottleState
from proxy.quota.kinds.replication.throttle import FOLLOWER, LEADER

PREFIX: Final = "quota_proxy_"
DOES: Final = {LEADER: "sends", FOLLOWER: "fetches"}
STATED_AT_LEAST_SECONDS: Final = 5.0
"""A side whose replicas are behind for less than this says nothing yet of whether they catch up."""


def replication_families(
    state: ReplicationState | None, lags: Iterable[tuple[int, int]], now: float
) -> Iterator[Metric | None]:
    """Kafka's LeaderReplicationThrottledRate, FollowerReplicationThrottledRate, SumReplicaLag, and more; None
    wherever others may want a turn.

    `state`: None where there is no replication listener. `lags`: by connection its follower, and the messages
    that it lacks.
    """
    if state is None:
        return
    sides = state.report(now)
    for role, does in DOES.items():
        yield from _rates(role, does, [side for side in sides if side.role == role])
    yield _by_role(
        CounterMetricFamily,
        "replication_omitted_partitions",
        "Partitions left out of fetches.",
        sides,
        lambda side: side.omitted,
    )
    yield _by_role(
        GaugeMetricFamily,
        "replication_throttle_limit",
        "Bytes per second of throttled replicas that are allowed.",
        [side for side in sides if side.limited],
        lambda side: side.limit,
    )
    yield _by_role(
        GaugeMetricFamily,
        "replication_replicas_behind",
        "Throttled replicas that are not in sync.",
        sides,
        lambda side: side.behind,
    )
    text = "Bytes per second by which throttled partitions grow, estimated."
    yield _by_role(GaugeMetricFamily, "replication_inbound_rate", text, sides, lambda side: side.inbound)
    text = "Whether throttled replicas never get in sync: they grow as fast as they may be fetched."
    yield _by_role(
        GaugeMetricFamily, "replication_throttle_too_low", text, sides, lambda side: float(side.endless)
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
    """The rows of /api/quotas; those of other quotas have the first eight keys as well."""
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
            "too_low": side.endless,
        }
        for side in state.report(now)
        if side.limited
    ]


def endless(state: ReplicationState, now: float) -> dict[tuple[str, int], str]:
    """By role and broker, a sentence for each side whose replicas never get in sync."""
    return {
        (side.role, side.node_id): _too_low(side, now)
        for side in state.report(now)
        if side.endless and now - side.since >= STATED_AT_LEAST_SECONDS
    }


def _too_low(side: ThrottleState, now: float) -> str:
    # Of what has been left out from the start, nobody has told how much there is.
    messages = f" and by {side.lag} messages" if side.lag else ""
    return (
        f"broker {side.node_id} {DOES[side.role]} throttled replicas at {side.limit:.0f} B/s at most, and "
        f"they grow by {side.inbound:.0f} B/s: {side.behind} of them, behind for {now - side.since:.0f} s"
        f"{messages}, do not get in sync; raise {side.role}.replication.throttled.rate"
    )
