"""What-if of the byte rates of topic partitions (KAFKA-16042).

The event of a partition has its bytes. The event of the same client and API without a topic has the requests
that carried them, and the throttle time. The requests of a tenant are reconstructed as in `replay.py`; only
waits that this quota caused count. Each request contains bytes of every limited partition of the interval,
and waits for the partition that is furthest over its limit. Bytes that were rejected in the events are
offered again.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.quota_file import QuotaSet
from pipeline.transforms.layout import AS_THEY_CAME, AT_ONCE, Interval, Step, lay_out, throttled_rate
from pipeline.transforms.played import (
    AFTER,
    STATE,
    STEP_SECONDS,
    SUMS,
    Connection,
    Row,
    after_table,
    intervals_of,
    play,
)
from pipeline.transforms.sequence import in_sequence
from pipeline.transforms.totals import total
from proxy.quota.identity import Identity
from proxy.quota.kinds.topic_partition_bytes.kind import KIND
from proxy.quota.limits.config_keys import CONSUMER_BYTE_RATE, OMIT, PRODUCER_BYTE_RATE
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.resources import DEFAULT_RESOURCE, ConfigKey
from proxy.quota.limits.topic_limits import topic_limit
from proxy.quota.measure.bucket import Bucket
from proxy.quota.quota import Quota
from proxy.wire.api_keys import FETCH, PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item, RequestView, ResponseView

_APIS: Final = {PRODUCER_BYTE_RATE.name: ("Produce",), CONSUMER_BYTE_RATE.name: ("Fetch", "ShareFetch")}
_KEYS: Final = {key.name: key for key in (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE)}
_ACTION: Final = ".action"
_TENANT: Final = (*STATE, "user", "client_id", "bucket_quota")
"""The key of a tenant whose requests may carry limited partitions."""
PartitionShares = Sequence[tuple[str, int, float]]
"""Topic, partition, and its part of the bytes of each request."""


def replayed_topics(quotas: QuotaSet) -> list[str]:
    """Return the quotas that are replayed here. With `consumer.byte.rate.action: omit`, events do not say
    what a consumer would have fetched instead of the omitted partitions.
    """
    omits = any(configs.get(CONSUMER_BYTE_RATE.name + _ACTION) == OMIT for configs in quotas.topics.values())
    return [PRODUCER_BYTE_RATE.name] if omits else list(_APIS)


def replay_topics(events: DataFrame, quotas: QuotaSet) -> DataFrame:
    """Turn deduplicated events into rows of AFTER. Each direction at each broker of each proxy is replayed on
    its own.
    """
    limited = F.coalesce(*[F.when(_is_of(quota, quotas), F.lit(quota)) for quota in replayed_topics(quotas)])
    found = events.withColumn("bucket_quota", limited).where(F.col("bucket_quota").isNotNull())
    produced = F.col("bucket_quota") == PRODUCER_BYTE_RATE.name
    waited = F.col("quota").eqNullSafe(F.col("bucket_quota"))
    sums = {
        "requests": F.col("requests"),
        "throttled_requests": F.when(waited, F.col("throttled_requests")).otherwise(0),
        "throttle_ms": F.when(waited, F.col("throttle_ms")).otherwise(0),
        "bytes": F.when(F.col("topic").isNull(), 0)
        .when(produced, F.col("bytes_in") + F.col("rejected_bytes"))
        .otherwise(F.col("bytes_out")),
    }
    intervals = found.groupBy(*_TENANT, "api", "topic", "partition", "interval_start_ms").agg(
        F.max("interval_ms").alias("interval_ms"), *[total(sums[name]).alias(name) for name in SUMS]
    )
    users = intervals.where(F.col("topic").isNotNull()).select(*_TENANT).distinct()

    def run(rows: Any) -> Any:
        return after_table(rows, simulate_topics(rows, quotas))

    return (
        intervals.join(users, list(_TENANT), "left_semi")
        .groupBy(*STATE, "bucket_quota")
        .applyInPandas(run, AFTER)
    )


def _is_of(quota: str, quotas: QuotaSet) -> Column:
    """Whether an event belongs to a partition that this quota limits, or to requests that may carry one."""
    named = [name for name, configs in quotas.topics.items() if quota in configs and name != DEFAULT_RESOURCE]
    topic = F.col("topic").isin(named)
    if quota in quotas.topics.get(DEFAULT_RESOURCE, {}):
        topic = F.col("topic").isNotNull()
    return F.col("api").isin(*_APIS[quota]) & (F.col("topic").isNull() | topic)


@final
class _Sender:
    """What one of a tenant's connections sends, and the partitions of its next request."""

    def __init__(self, shares: Sequence[PartitionShares]) -> None:
        self._of_intervals: Final = shares
        self.shares: PartitionShares = ()

    def steps(
        self, intervals: Sequence[tuple[Interval, int]], place: int, limit: float, burst: float
    ) -> Iterator[Step]:
        """`limit`: the tenant's limit in bytes/s, over all its connections."""
        was = throttled_rate(intervals, limit)
        eager = AT_ONCE if was == limit else AS_THEY_CAME
        intervals = in_sequence(intervals, was, burst)
        for (interval, count), shares in zip(intervals, self._of_intervals, strict=True):
            if place in interval.places and shares:
                self.shares = shares
                yield from lay_out(
                    interval, was / interval.waiting, eager, burst, max(limit * STEP_SECONDS / count, 1.0)
                )


def simulate_topics(rows: Any, quotas: QuotaSet) -> list[Row]:
    """Replay the intervals of one broker in one direction. Return a row of AFTER for each connection."""
    quota = KIND.build()
    limits = quotas.limits()
    quota.configure(limits, 0.0)
    name = str(rows["bucket_quota"].iloc[0])
    rows = rows.sort_values("interval_start_ms", kind="stable")
    base = int(rows["interval_start_ms"].iloc[0])
    connections: list[Connection] = []
    senders: list[_Sender] = []
    for (user, client_id, _), found in rows.groupby(["user", "client_id", "api"], sort=False):
        who = Identity(user, client_id, "")
        if limits.settings.exemptions.exempt(who):
            continue
        for sender, steps in _senders(found, base, quotas, _KEYS[name]):
            senders.append(sender)
            connections.append(Connection(who, steps))

    def charge(place: int, size: float, now: float) -> float:
        connection = connections[place]
        shares = senders[place].shares
        items = [Item(topic, NO_ID, number, round(size * share)) for topic, number, share in shares]
        return _charge(quota, name, items, connection, now)

    play(connections, charge)
    return [connection.row(name) for connection in connections]


def _charge(quota: Quota, name: str, items: list[Item], connection: Connection, now: float) -> float:
    who = connection.who
    if name != PRODUCER_BYTE_RATE.name:
        response = ResponseView(0, False, 0, want_items=True)
        response.items.extend(items)
        return quota.charge(RequestView(FETCH, 0, 0, who.client_id, 0), response, who, now).throttle_seconds
    over: dict[int, Bucket] = {}
    quota.reject(items, over, now)
    connection.rejected_bytes += sum(items[place].size for place in over)
    request = RequestView(PRODUCE, 0, 0, who.client_id, 0, want_items=True)
    request.items.extend(item for place, item in enumerate(items) if place not in over)
    return quota.admit(request, who, now).throttle_seconds


def _senders(
    tenant: Any, base: int, quotas: QuotaSet, key: ConfigKey
) -> Iterator[tuple[_Sender, Iterator[Step]]]:
    """Yield a tenant's connections. `tenant`: its rows of partitions and of requests, in order of time.

    The topic `<rest>` stands for partitions that the event does not name, so no limit is known for it.
    """
    tenant = tenant[tenant["topic"].isna() | tenant["partition"].notna()]
    # The sums of a few numbers of 64 bits need more than 64 bits.
    tenant = tenant.astype(dict.fromkeys(SUMS, float))
    partitions = tenant[tenant["topic"].notna() & (tenant["bytes"] > 0)]
    if partitions.empty:
        return
    starts = tenant.groupby("interval_start_ms", sort=True)
    sums = starts[list(SUMS)].sum()
    sums["interval_ms"] = starts["interval_ms"].max()
    intervals = intervals_of(sums.reset_index(), base)
    used = partitions.groupby(["topic", "partition"])["bytes"].sum()
    resources = quotas.limits().resources
    limit = min(
        topic_limit(resources, str(topic), key) * float(used.sum()) / float(size)
        for (topic, _), size in used.items()
    )
    if limit == UNLIMITED:
        return
    shares: dict[int, list[tuple[str, int, float]]] = {start: [] for start in sums.index}
    columns = [partitions[name].tolist() for name in ("interval_start_ms", "topic", "partition", "bytes")]
    for start, topic, partition, size in zip(*columns, strict=True):
        shares[start].append((topic, int(partition), size / float(sums.at[start, "bytes"])))
    for place in range(max(max(each.places) for each, _ in intervals) + 1):
        sender = _Sender(list(shares.values()))
        yield sender, sender.steps(intervals, place, limit, quotas.burst_seconds)
