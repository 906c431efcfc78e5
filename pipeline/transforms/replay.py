"""What-if: the events once more, through the proxy's own rules, with another set of quotas.

An event says how much came in an interval, not when. Each interval's requests are therefore laid out first:
evenly where nothing was throttled; otherwise in bursts, each followed by requests that wait, such that the
waits take as long as they did (`layout.py`). A client sends its next request when the wait for the last one
is over, as it would (`simulate`): with a lower quota it falls behind, with a higher one it is never ahead of
what it sent. What quotas other than byte rates and the broker's did cannot be replayed from sums, and stays
as it was.
"""

import heapq
from collections.abc import Sequence
from typing import Any, Final, final

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pipeline.quota_file import QuotaSet
from pipeline.schema import REPLAY, names
from pipeline.transforms.buckets import APIS, charged, with_buckets
from pipeline.transforms.layout import (
    AS_THEY_CAME,
    AT_ONCE,
    Interval,
    Step,
    connections_of,
    held_at,
    lay_out,
)
from pipeline.transforms.replay_broker import refused
from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.kinds.broker_bytes_in import SHARE
from proxy.quota.kinds.client_bytes import FETCH, KIND, PRODUCE, PRODUCER_BYTE_RATE
from proxy.wire.views import RequestView, ResponseView

_STEP_SECONDS: Final = 0.25
"""Requests of an interval are charged together as long as they take no longer than this at the limit."""
_ON_TIME: Final = 1e-6
_SIZE_FIELD: Final = 4
_STATE: Final = ("cluster", "proxy", "listener", "broker")
"""Each broker's quotas have a state of their own in each proxy."""
_TENANT: Final = ("user", "client_id", "quota")
_AFTER: Final = StructType(
    [
        StructField("user", StringType()),
        StructField("client_id", StringType()),
        StructField("quota", StringType()),
        StructField("throttle_ms", LongType()),
        StructField("delayed_bytes", LongType()),
        StructField("late_ms", LongType()),
    ]
)


def replay(events: DataFrame, quotas: QuotaSet) -> DataFrame:
    """Deduplicated events to `schema.REPLAY`; each tenant that a quota bound before or binds after."""
    before = events.groupBy("user", "client_id", "quota").agg(
        F.sum("throttle_ms").alias("throttle_ms"), F.sum("rejected_bytes").alias("rejected_bytes")
    )
    before = before.where((F.col("throttle_ms") > 0) | (F.col("rejected_bytes") > 0))
    after = replayed(events, quotas).withColumn("rejected_bytes", F.lit(None).cast("bigint"))
    if quotas.brokers:
        after = after.unionByName(refused(events, quotas), allowMissingColumns=True)
    same = (
        (F.col("before.user") == F.col("after.user"))
        & (F.col("before.client_id") == F.col("after.client_id"))
        & F.col("before.quota").eqNullSafe(F.col("after.quota"))
    )
    both = before.alias("before").join(after.alias("after"), same, "full")
    is_replayed = F.coalesce("before.quota", "after.quota").isin(*APIS, SHARE)
    before_ms = F.coalesce("before.throttle_ms", F.lit(0))
    rejected = F.coalesce("before.rejected_bytes", F.lit(0))
    return both.select(
        *[
            F.coalesce(f"before.{name}", f"after.{name}").alias(name)
            for name in ("user", "client_id", "quota")
        ],
        before_ms.alias("before_throttle_ms"),
        F.when(is_replayed, F.coalesce("after.throttle_ms", F.lit(0)))
        .otherwise(before_ms)
        .alias("after_throttle_ms"),
        rejected.alias("before_rejected_bytes"),
        F.when(is_replayed, F.coalesce("after.rejected_bytes", F.lit(0)))
        .otherwise(rejected)
        .alias("after_rejected_bytes"),
        F.coalesce("after.delayed_bytes", F.lit(0)).alias("after_delayed_bytes"),
        F.coalesce("after.late_ms", F.lit(0)).alias("after_late_ms"),
    ).select(*names(REPLAY))


def replayed(events: DataFrame, quotas: QuotaSet) -> DataFrame:
    """`user, client_id, quota, throttle_ms, delayed_bytes, late_ms`: each bucket replayed on its own."""
    intervals = (
        charged(events)
        .groupBy(*_STATE, "user", "client_id", "bucket_quota", "api", "interval_start_ms")
        .agg(
            F.max("interval_ms").alias("interval_ms"),
            *[F.sum(name).alias(name) for name in ("requests", "bytes", "throttled_requests", "throttle_ms")],
        )
    )

    def run(rows: Any) -> Any:
        return pd.DataFrame(simulate(rows, quotas), columns=_AFTER.names)

    buckets = with_buckets(intervals, quotas).groupBy(
        *_STATE, "bucket_quota", "bucket_user", "bucket_client_id"
    )
    found = buckets.applyInPandas(run, _AFTER)
    sums = found.groupBy("user", "client_id", "quota").agg(
        F.sum("throttle_ms").alias("throttle_ms"),
        F.sum("delayed_bytes").alias("delayed_bytes"),
        F.max("late_ms").alias("late_ms"),
    )
    return sums.where((F.col("throttle_ms") > 0) | (F.col("delayed_bytes") > 0))


@final
class Connection:
    """One client connection as it is laid out: what it sends, and when at the earliest."""

    def __init__(self, who: Identity) -> None:
        self.who: Final = who
        self.steps: Final[list[Step]] = []
        self.next = 0
        self.throttle_seconds = 0.0
        self.delayed_bytes = 0.0
        self.late_seconds = 0.0


def simulate(rows: Any, quotas: QuotaSet) -> list[tuple[str, str, str, int, int, int]]:
    """One bucket's intervals through the proxy's engine: a row of `_AFTER` for each tenant."""
    engine = QuotaEngine([KIND.build()])
    engine.configure(quotas.limits(), 0.0)
    quota = str(rows["bucket_quota"].iloc[0])
    connections = _connections(rows, quotas.burst_seconds)
    waiting = [
        (connection.steps[0][0], place) for place, connection in enumerate(connections) if connection.steps
    ]
    heapq.heapify(waiting)
    while waiting:
        now, place = heapq.heappop(waiting)
        connection = connections[place]
        due, size = connection.steps[connection.next]
        if now - due > _ON_TIME:
            connection.delayed_bytes += size
            connection.late_seconds = max(connection.late_seconds, now - due)
        wait = _charge(engine, quota, round(size), connection.who, now)
        connection.throttle_seconds += wait
        connection.next += 1
        if connection.next < len(connection.steps):
            heapq.heappush(waiting, (max(now + wait, connection.steps[connection.next][0]), place))
    return [
        (
            each.who.principal,
            each.who.client_id,
            quota,
            round(each.throttle_seconds * 1000),
            round(each.delayed_bytes),
            round(each.late_seconds * 1000),
        )
        for each in connections
    ]


def _charge(engine: QuotaEngine, quota: str, size: int, who: Identity, now: float) -> float:
    if quota == PRODUCER_BYTE_RATE:
        return engine.admit(RequestView(PRODUCE, 0, 0, who.client_id, size), who, now).throttle_seconds
    request = RequestView(FETCH, 0, 0, who.client_id, 0)
    response = ResponseView(0, False, max(size - _SIZE_FIELD, 0))
    return engine.charge(request, response, who, now).throttle_seconds


def _connections(rows: Any, burst_seconds: float) -> list[Connection]:
    """Each tenant's intervals, divided among as many connections as its waits must have had."""
    rows = rows.sort_values("interval_start_ms", kind="stable")
    base = float(rows["interval_start_ms"].iloc[0])
    tenants: dict[tuple[str, str, str], list[Any]] = {}
    for row in rows.itertuples():
        tenants.setdefault((row.user, row.client_id, row.api), []).append(row)
    connections: list[Connection] = []
    for (user, client_id, _), found in tenants.items():
        limit = float(found[0].limit)
        intervals = [_interval(found, place, base) for place in range(len(found))]
        held = held_at(intervals, limit)
        eager = AT_ONCE if held == limit else AS_THEY_CAME
        most = max(count for _, count in intervals)
        pool = [Connection(Identity(user, client_id, "")) for _ in range(most)]
        for interval, count in intervals:
            per_step = max(limit * _STEP_SECONDS / count, 1.0)
            steps = list(lay_out(interval, held / count, eager, burst_seconds, per_step))
            for connection in pool[:count]:
                connection.steps.extend(steps)
        connections += pool
    return connections


def _interval(rows: Sequence[Any], place: int, base: float) -> tuple[Interval, int]:
    """What one connection did in an interval, and on how many the tenant did that."""
    row = rows[place]
    count = connections_of(row.throttled_requests, row.throttle_ms, row.interval_ms)
    interval = Interval(
        (row.interval_start_ms - base) / 1000,
        row.interval_ms / 1000,
        row.bytes / count,
        max(row.requests / count, 1.0),
        row.throttled_requests / count,
        row.throttle_ms / 1000 / count,
        _waits(rows, place + 1, row) and not _waits(rows, place - 1, row),
    )
    return interval, count


def _waits(intervals: Sequence[Any], place: int, beside: Any) -> bool:
    """Whether the interval at a place is right beside this one, and something waited in it."""
    if not 0 <= place < len(intervals):
        return False
    row = intervals[place]
    apart = abs(row.interval_start_ms - beside.interval_start_ms)
    return bool(apart <= beside.interval_ms and row.throttle_ms > 0)
