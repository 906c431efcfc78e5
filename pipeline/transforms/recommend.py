"""Recommends a byte rate for each tenant from what it used."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.transforms.buckets import charged
from proxy.quota.identity import DEFAULT_IN_YAML, QuotaEntity
from proxy.quota.usage import REST

PER_USER: Final = "user"
PER_CLIENT_ID: Final = "client-id"
PER_BOTH: Final = "user+client-id"
ENTITIES: Final = (PER_BOTH, PER_USER, PER_CLIENT_ID)
_UNIT: Final = 1024
_PERCENTILE: Final = 0.99


@dataclass(frozen=True, slots=True)
class Rules:
    """headroom: the quota divided by the p99 rate. capacity: bytes/s of a broker in each direction, which the
    quotas of its users together do not exceed; None: unknown. step: the largest decrease, as a part of the
    current quota.
    """

    headroom: float = 1.3
    capacity: float | None = None
    step: float = 0.25


def peaks(events: DataFrame, per: str = PER_BOTH) -> DataFrame:
    """Return `user, client_id, quota, broker, p99_rate` (bytes/s) of each entity at each proxy and broker.

    The percentile covers only intervals with traffic, so idle nights do not lower it.
    """
    names = {
        "user": F.lit("") if per == PER_CLIENT_ID else F.col("user"),
        "client_id": F.lit("") if per == PER_USER else F.col("client_id"),
    }
    keys = ("cluster", "proxy", "broker", "user", "client_id", "bucket_quota")
    intervals = (
        charged(events)
        .withColumns(names)
        .where(F.col("bytes") > 0)
        .groupBy(*keys, "interval_start_ms")
        .agg((F.sum("bytes") * F.lit(1000.0) / F.max("interval_ms")).alias("rate"))
    )
    found = intervals.groupBy(*keys).agg(F.percentile("rate", _PERCENTILE).alias("p99_rate"))
    return found.select(
        "user",
        "client_id",
        F.col("bucket_quota").alias("quota"),
        F.concat_ws("/", "cluster", "broker").alias("broker"),
        "p99_rate",
    )


def recommend(
    peaks: list[tuple[str, str, str, str, float]],
    rules: Rules,
    current: Mapping[QuotaEntity, Mapping[str, float]],
) -> dict[QuotaEntity, dict[str, int]]:
    """Turn the rows of peaks() into quotas in bytes/s: the highest p99 of any broker, with headroom.

    If the quotas of a broker's users exceed its capacity, all of them are scaled down alike. A quota is
    lowered by at most `step` of the current one; a later run lowers it further.
    """
    wanted: dict[tuple[QuotaEntity, str], float] = {}
    on_broker: dict[tuple[str, str], set[tuple[QuotaEntity, str]]] = {}
    for user, client_id, quota, broker, rate in peaks:
        entity = _entity(user, client_id)
        if entity is None:
            continue
        key = (entity, quota)
        wanted[key] = max(wanted.get(key, 0.0), rate * rules.headroom)
        on_broker.setdefault((broker, quota), set()).add(key)
    fitted = dict(wanted)
    if rules.capacity is not None:
        for keys in on_broker.values():
            part = rules.capacity / sum(wanted[key] for key in keys)
            for key in keys:
                fitted[key] = min(fitted[key], wanted[key] * part)
    quotas: dict[QuotaEntity, dict[str, int]] = {}
    for (entity, quota), rate in fitted.items():
        lowest = current.get(entity, {}).get(quota, 0.0) * (1 - rules.step)
        quotas.setdefault(entity, {})[quota] = _whole(max(rate, lowest), fits=rules.capacity is not None)
    return quotas


def _entity(user: str, client_id: str) -> QuotaEntity | None:
    """Return the entity; None if a file cannot name it, and for the `<rest>` that stands for many clients."""
    if DEFAULT_IN_YAML in (user, client_id) or REST in (user, client_id) or not (user or client_id):
        return None
    return QuotaEntity(user or None, client_id or None)


def _whole(rate: float, *, fits: bool) -> int:
    """Round to KiB/s: up, or down where the quotas have to fit into a capacity."""
    return max((math.floor if fits else math.ceil)(rate / _UNIT), 1) * _UNIT
