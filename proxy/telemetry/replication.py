"""Replication quotas in /api/quotas and in the log."""

from typing import Final

from proxy.quota.kinds.replication.state import ReplicationState, ThrottleState
from proxy.quota.kinds.replication.throttle import FOLLOWER, LEADER

DOES: Final = {LEADER: "sends", FOLLOWER: "fetches"}
STATED_AT_LEAST_SECONDS: Final = 5.0
"""How long replicas have to be out of sync before a throttle is called too low: the rates of a shorter time
do not show yet whether they catch up."""


def shown(state: ReplicationState, now: float) -> list[dict[str, object]]:
    """The rows of /api/quotas. Rows of other quotas have the first eleven keys too."""
    return [
        {
            "kind": f"{side.role}.replication.throttled.rate",
            "broker": side.node_id,
            "entity": {},
            "mode": "enforce" if side.enforced else "observe",
            "limit": side.limit,
            "scope": "broker",
            "share": side.share,
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
