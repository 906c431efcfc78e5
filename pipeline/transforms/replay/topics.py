"""What-if of the byte rates of topic partitions (KAFKA-16042), and of whole topics.

The event of a partition has its bytes. The event of the same client and API without a topic has the requests
that carried them, and the throttle time. The requests of a tenant are reconstructed as in `replay.py`; only
waits that this quota caused count. Each request contains bytes of every limited partition of the interval,
and waits for the partition that is furthest over its limit. Bytes that were rejected in the events are
offered again.

A partition's rate has a state at each broker of each proxy, and a topic's rate one for the whole cluster.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.inputs.quota_file import QuotaSet
from pipeline.transforms.replay.layout import Interval
from pipeline.transforms.replay.played import (
    AFTER,
    PLACE,
    STATE,
    SUMS,
    Connection,
    Row,
    after_table,
    has_places,
    intervals_of,
    play,
)
from pipeline.transforms.replay.senders import Sender, connections
from pipeline.transforms.totals import total
from proxy.quota.identity import Identity
from proxy.quota.kinds.topic_bytes import KIND, TOPIC_CONFIGS
from proxy.quota.kinds.topic_partition_bytes import kind as partition_kind
from proxy.quota.limits.config_keys import OMIT
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.resources import DEFAULT_RESOURCE, ConfigKey
from proxy.quota.limits.topic_limits import topic_limit
from proxy.quota.measure.bucket import Bucket
from proxy.quota.quota import Quota, QuotaKind
from proxy.wire.api_keys import FETCH, PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item, RequestView, ResponseView


@dataclass(frozen=True, slots=True)
class _Rate:
    """A byte rate of topics. `whole_topic`: the partitions of a topic share it, on all brokers."""

    key: ConfigKey
    action: ConfigKey
    kind: QuotaKind
    apis: tuple[str, ...]
    whole_topic: bool

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def produced(self) -> bool:
        return "Produce" in self.apis


_FETCHES: Final = ("Fetch", "ShareFetch")
_RATES: Final = {
    rate.name: rate
    for kind, configs in ((partition_kind.KIND, partition_kind.PARTITION_CONFIGS), (KIND, TOPIC_CONFIGS))
    for rate in (
        _Rate(configs.produced, configs.produced_action, kind, ("Produce",), configs.whole_topic),
        _Rate(configs.consumed, configs.consumed_action, kind, _FETCHES, configs.whole_topic),
    )
}
_TENANT: Final = (*STATE, "user", "client_id")
"""The key of a tenant whose requests may carry limited partitions."""
PartitionShares = Sequence[tuple[str, int, float]]
"""Topic, partition, and its part of the bytes of each request."""


def replayed_topics(quotas: QuotaSet) -> list[str]:
    """Return the byte rates of topics that can be replayed: not those that omit partitions of any topic,
    because events do not name what was omitted.
    """
    return [
        rate.name
        for rate in _RATES.values()
        if not any(configs.get(rate.action.name) == OMIT for configs in quotas.topics.values())
    ]


def replay_topics(events: DataFrame, quotas: QuotaSet) -> DataFrame:
    """Turn deduplicated events into rows of AFTER."""
    used = [name for name in replayed_topics(quotas) if any(name in of for of in quotas.topics.values())]
    return reduce(DataFrame.unionByName, [_replay_rate(events, quotas, _RATES[name]) for name in used])


def _replay_rate(events: DataFrame, quotas: QuotaSet, rate: _Rate) -> DataFrame:
    """Replay one byte rate of topics; return rows of AFTER."""
    found = events.where(_is_of(rate, quotas)).withColumn("bucket_quota", F.lit(rate.name))
    waited = F.col("quota").eqNullSafe(F.lit(rate.name))
    sums = {
        "requests": F.col("requests"),
        "throttled_requests": F.when(waited, F.col("throttled_requests")).otherwise(0),
        "throttle_ms": F.when(waited, F.col("throttle_ms")).otherwise(0),
        "bytes": F.when(F.col("topic").isNull(), 0)
        .when(F.lit(rate.produced), F.col("bytes_in") + F.col("rejected_bytes"))
        .otherwise(F.col("bytes_out")),
    }
    intervals = found.groupBy(*_TENANT, "bucket_quota", "api", "topic", "partition", "interval_start_ms").agg(
        F.max("interval_ms").alias("interval_ms"), *[total(sums[name]).alias(name) for name in SUMS]
    )
    users = intervals.where(F.col("topic").isNotNull()).select(*_TENANT).distinct()

    def run(rows: Any) -> Any:
        return after_table(rows, simulate_topics(rows, quotas))

    state = ("cluster",) if rate.whole_topic else STATE
    return intervals.join(users, list(_TENANT), "left_semi").groupBy(*state).applyInPandas(run, AFTER)


def _is_of(rate: _Rate, quotas: QuotaSet) -> Column:
    """Whether an event belongs to a partition that this rate limits, or to requests that may carry one."""
    named = [topic for topic, of in quotas.topics.items() if rate.name in of and topic != DEFAULT_RESOURCE]
    topic = F.col("topic").isin(named)
    if rate.name in quotas.topics.get(DEFAULT_RESOURCE, {}):
        topic = F.col("topic").isNotNull()
    return F.col("api").isin(*rate.apis) & (F.col("topic").isNull() | topic)


@dataclass(frozen=True, slots=True)
class _Tenant:
    """What a tenant sends at one place. `shares`: the limited partitions in the requests of each interval."""

    sender: Sender
    shares: Sequence[PartitionShares]


def simulate_topics(rows: Any, quotas: QuotaSet) -> list[Row]:
    """Replay the intervals of one state. Return a row of AFTER for each connection."""
    rate = _RATES[str(rows["bucket_quota"].iloc[0])]
    quota = rate.kind.build()
    quota.configure(quotas.limits(), 0.0)
    rows = rows.sort_values("interval_start_ms", kind="stable")
    tenants = [*_tenants(rows, quotas, rate)]
    senders = [tenant.sender for tenant in tenants]
    found = [*connections(senders, quotas.burst_seconds, together=has_places(rows))]
    sending = [connection for _, connection in found]

    def charge(place: int, size: float, now: float) -> float:
        index, connection = found[place]
        assert connection.next is not None
        *_, interval = connection.next
        shares = tenants[index].shares[interval]
        items = [Item(topic, NO_ID, number, round(size * share)) for topic, number, share in shares]
        return _charge(quota, rate, items, connection, now)

    play(sending, charge)
    return [connection.row(rate.name) for connection in sending]


def _charge(quota: Quota, rate: _Rate, items: list[Item], connection: Connection, now: float) -> float:
    """Charge a request with these items; return its throttle time in seconds. Rejected items are free."""
    who = connection.who
    if not rate.produced:
        response = ResponseView(0, False, 0, want_items=True)
        for item in items:
            response.add(item)
        return quota.charge(RequestView(FETCH, 0, 0, who.client_id, 0), response, who, now).throttle_seconds
    over: dict[int, Bucket] = {}
    quota.reject(items, over, now)
    connection.rejected_bytes += sum(items[place].size for place in over)
    request = RequestView(PRODUCE, 0, 0, who.client_id, 0, want_items=True)
    for place, item in enumerate(items):
        if place not in over:
            request.add(item)
    return quota.admit(request, who, now).throttle_seconds


def _tenants(rows: Any, quotas: QuotaSet, rate: _Rate) -> Iterator[_Tenant]:
    """Yield the tenants that have partitions with a limit, by place and API. `rows` are in order of time."""
    base = int(rows["interval_start_ms"].iloc[0])
    exempt = quotas.limits().settings.exemptions
    # The topic `<rest>` stands for partitions that the event does not name, so no limit is known for it. The
    # sums of a few numbers of 64 bits need more than 64 bits.
    rows = rows[rows["topic"].isna() | rows["partition"].notna()].astype(dict.fromkeys(SUMS, float))
    for (*_, user, client_id, _), found in rows.groupby([*PLACE, "user", "client_id", "api"], sort=False):
        partitions = found[found["topic"].notna() & (found["bytes"] > 0)]
        if partitions.empty or exempt.exempt(Identity(user, client_id, "")):
            continue
        limit = _limit(partitions, quotas, rate)
        if limit != UNLIMITED:
            intervals, shares = _intervals(found, partitions, base)
            yield _Tenant(Sender(user, client_id, intervals, limit), shares)


def _limit(partitions: Any, quotas: QuotaSet, rate: _Rate) -> float:
    """Return the bytes/s of a tenant at which it first reaches the limit of a partition or topic, if each of
    them always has the same part of the tenant's bytes.
    """
    resources = quotas.limits().resources
    used = partitions.groupby("topic" if rate.whole_topic else ["topic", "partition"])["bytes"].sum()
    topics = used.index.get_level_values("topic")
    return min(
        topic_limit(resources, str(topic), rate.key) * float(used.sum()) / float(size)
        for topic, size in zip(topics, used, strict=True)
    )


def _intervals(rows: Any, partitions: Any, base: int) -> tuple[list[Interval], list[PartitionShares]]:
    """Return the intervals of a tenant, with the sums over its rows, and the shares of its partitions in
    each.
    """
    starts = rows.groupby("interval_start_ms", sort=True)
    sums = starts[list(SUMS)].sum()
    sums["interval_ms"] = starts["interval_ms"].max()
    shares: dict[int, list[tuple[str, int, float]]] = {start: [] for start in sums.index}
    columns = [partitions[name].tolist() for name in ("interval_start_ms", "topic", "partition", "bytes")]
    for start, topic, partition, size in zip(*columns, strict=True):
        shares[start].append((topic, int(partition), size / float(sums.at[start, "bytes"])))
    intervals = zip(intervals_of(sums.reset_index(), base), shares.values(), strict=True)
    # Requests without a limited partition need no replay.
    return [each if of else replace(each, places=()) for each, of in intervals], list(shares.values())
