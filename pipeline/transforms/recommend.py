"""Recommends a byte rate for each tenant from what it used."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.inputs.quota_file import BROKER, CLUSTER
from pipeline.transforms.buckets import charged, interval_rates
from proxy.quota.identity import DEFAULT_IN_YAML, QuotaEntity
from proxy.quota.usage import REST

PER_USER: Final = "user"
PER_CLIENT_ID: Final = "client-id"
PER_BOTH: Final = "user+client-id"
ENTITIES: Final = (PER_BOTH, PER_USER, PER_CLIENT_ID)
DEFAULT_FLOOR: Final = 4096.0
"""Bytes/s: a request of some records each second."""
DEFAULT_SAMPLES: Final = 3
"""Intervals with traffic: a percentile of fewer says little."""
_UNIT: Final = 1024
"""Bytes/s of which a recommended quota is a multiple."""
_PERCENTILE: Final = 0.99
"""Of the rates of intervals with traffic: single peaks do not raise a quota."""


@dataclass(frozen=True, slots=True)
class Rules:
    """headroom: the quota divided by the p99 rate. capacity: bytes/s of a broker in each direction, which the
    quotas of its users together do not exceed; None: unknown. step: the largest decrease, as a part of the
    current quota. floor: the smallest quota in bytes/s, unless the capacity requires a smaller one. samples:
    the fewest intervals with traffic that give a quota. per: one of ENTITIES.
    """

    headroom: float = 1.3
    capacity: float | None = None
    step: float = 0.25
    floor: float = DEFAULT_FLOOR
    samples: int = DEFAULT_SAMPLES
    per: str = PER_BOTH


class Peak(NamedTuple):
    """A row of peaks(). `samples`: the number of intervals with traffic that `p99_rate` is of."""

    user: str
    client_id: str
    quota: str
    broker: str | None
    p99_rate: float
    samples: int
    cluster: str = ""


class Skipped(NamedTuple):
    """A row of `schema.SKIPPED`."""

    user: str
    client_id: str
    quota: str
    samples: int
    p99_rate: float
    reason: str


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Quotas in bytes/s, and the tenants that get none."""

    quotas: dict[QuotaEntity, dict[str, int]]
    skipped: list[Skipped]


def peaks(events: DataFrame, per: str = PER_BOTH, scopes: Collection[str] = (BROKER,)) -> DataFrame:
    """Return `user, client_id, quota, broker, p99_rate, samples, cluster` of each entity at each proxy and
    broker; with CLUSTER, over all of them, and `broker` is null.

    The percentile covers only intervals with traffic, so idle nights do not lower it.
    """
    names = {
        "user": F.lit("") if per == PER_CLIENT_ID else F.col("user"),
        "client_id": F.lit("") if per == PER_USER else F.col("client_id"),
    }
    keys = ("user", "client_id", "bucket_quota")
    sent = charged(events).withColumns(names)
    rates = reduce(DataFrame.unionByName, [interval_rates(sent, keys, scope) for scope in sorted(scopes)])
    found = rates.groupBy("cluster", "proxy", "broker", *keys).agg(
        F.percentile("rate", _PERCENTILE).alias("p99_rate"), F.count("rate").alias("samples")
    )
    broker = F.when(F.col("broker").isNotNull(), F.concat_ws("/", "cluster", "broker"))
    return found.select(
        "user",
        "client_id",
        F.col("bucket_quota").alias("quota"),
        broker.alias("broker"),
        "p99_rate",
        "samples",
        "cluster",
    )


def at_each_broker(_: QuotaEntity) -> str:
    """The scope of every entity by default."""
    return BROKER


def recommend(
    peaks: Sequence[Peak],
    rules: Rules,
    current: Mapping[QuotaEntity, Mapping[str, float]],
    scope_of: Callable[[QuotaEntity], str] = at_each_broker,
) -> Recommendation:
    """Turn the rows of peaks() into quotas in bytes/s: the highest p99 of any broker, or of the cluster,
    by the entity's scope, with headroom.

    If the quotas of a broker's users exceed its capacity, all of them are scaled down alike; this does not
    concern quotas of the cluster. A quota is lowered by at most `step` of the current one; a later run lowers
    it further.
    """
    skipped = _skipped(peaks, rules)
    without = {(each.user, each.client_id, each.quota) for each in skipped}
    wanted: dict[tuple[QuotaEntity, str], float] = {}
    on_broker: dict[tuple[str, str], set[tuple[QuotaEntity, str]]] = {}
    for peak in peaks:
        if (peak.user, peak.client_id, peak.quota) in without:
            continue
        entity = QuotaEntity(peak.user or None, peak.client_id or None)
        if (peak.broker is None) != (scope_of(entity) == CLUSTER):
            continue
        key = (entity, peak.quota)
        wanted[key] = max(wanted.get(key, rules.floor), peak.p99_rate * rules.headroom)
        if peak.broker is not None:
            on_broker.setdefault((peak.broker, peak.quota), set()).add(key)
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
    return Recommendation(quotas, skipped)


def _skipped(peaks: Sequence[Peak], rules: Rules) -> list[Skipped]:
    """Return the tenants that get no quota, in order of their names."""
    samples: dict[tuple[str, str, str], int] = {}
    rates: dict[tuple[str, str, str], float] = {}
    for peak in peaks:
        key = (peak.user, peak.client_id, peak.quota)
        samples[key] = max(samples.get(key, 0), peak.samples)
        rates[key] = max(rates.get(key, 0.0), peak.p99_rate)
    found = []
    for key, count in sorted(samples.items()):
        reason = _no_entity(*key[:2], rules.per)
        if not reason and count < rules.samples:
            reason = f"it has fewer than {rules.samples} intervals with traffic (--samples)"
        if reason:
            found.append(Skipped(*key, count, rates[key], reason))
    return found


def _no_entity(user: str, client_id: str, per: str) -> str:
    """Return why no quota applies to these clients alone; empty if one does."""
    if REST in (user, client_id):
        return f"{REST} stands for many clients"
    if DEFAULT_IN_YAML in (user, client_id):
        return f"in a file of quotas, {DEFAULT_IN_YAML} stands for the default"
    if not client_id and per != PER_USER:
        return "it sends no client id, and a quota of its user is for all client ids (--per user)"
    if not user and per != PER_CLIENT_ID:
        return "it has no user, and a quota of its client id is for all users (--per client-id)"
    return ""


def _whole(rate: float, *, fits: bool) -> int:
    """Round to KiB/s: up, or down where the quotas have to fit into a capacity."""
    return max((math.floor if fits else math.ceil)(rate / _UNIT), 1) * _UNIT
