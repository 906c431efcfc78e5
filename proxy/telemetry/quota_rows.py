"""The rows of /api/quotas: one for each bucket, and their sums over several workers."""

from collections.abc import Iterable
from typing import Any, Final

from proxy.quota.engines import ALL_BROKERS
from proxy.quota.measure.bucket_state import BucketState
from proxy.wire.cursor import NO_PARTITION

Row = dict[str, Any]
_SUMMED: Final = (
    "share",
    "rate",
    "throttled_requests",
    "throttle_seconds",
    "replicas_behind",
    "lag",
    "inbound_rate",
)


def quota_row(broker: int, state: BucketState, now: float) -> Row:
    """A row of /api/quotas. `entity` has the names to which the bucket belongs; `broker` is null if all
    brokers share the bucket.
    """
    entity = entity_of(state.user, state.client_id, state.ip, state.topic, state.partition)
    return {
        "kind": state.quota,
        "broker": None if broker == ALL_BROKERS else broker,
        "entity": entity,
        "mode": state.mode,
        "limit": state.limit,
        "scope": "cluster" if broker == ALL_BROKERS else "broker",
        "share": state.share,
        "rate": state.rate,
        "throttled": state.throttled_until > now,
        "throttled_requests": state.throttled_requests,
        "throttle_seconds": state.throttle_seconds,
    }


def entity_of(user: str, client_id: str, ip: str, topic: str, partition: int) -> dict[str, object]:
    """The names that are not empty, by the part of the entity."""
    names = {"user": user, "client-id": client_id, "ip": ip, "topic": topic}
    entity: dict[str, object] = {part: name for part, name in names.items() if name}
    if partition != NO_PARTITION:
        entity["partition"] = partition
    return entity


def merged_rows(of_workers: Iterable[Iterable[Row]]) -> list[Row]:
    """One row for each bucket: a bucket's rates, shares and counts add up over the workers."""
    merged: dict[tuple[object, ...], Row] = {}
    for rows in of_workers:
        for row in rows:
            entity = tuple(sorted(row["entity"].items()))
            key = (row["kind"], row["broker"], entity, row["mode"], row.get("scope"))
            known = merged.get(key)
            if known is None:
                merged[key] = dict(row)
                continue
            for name in _SUMMED:
                if name in row:
                    known[name] += row[name]
            known["limit"] = max(known["limit"], row["limit"])
            known["throttled"] = known["throttled"] or row["throttled"]
            if "too_low" in row:
                _merge_throttles(known, row)
    return list(merged.values())


def _merge_throttles(known: Row, row: Row) -> None:
    """Combine what only rows of replication throttles have, and what does not add up."""
    since = [each["since_seconds"] for each in (known, row) if each["since_seconds"] is not None]
    known["since_seconds"] = max(since, default=None)
    # A worker compares the limit with the growth of its own followers' partitions only.
    known["too_low"] = known["replicas_behind"] > 0 and known["limit"] <= known["inbound_rate"]
