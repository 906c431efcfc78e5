"""What-if: the events once more, through the proxy's own rules, with another set of quotas.

An event says how much came in an interval, not when. Each interval's requests are therefore laid out first:
evenly where nothing was throttled; otherwise in bursts, each followed by requests that wait, such that the
waits take as long as they did (`layout.py`). A client sends its next request when the wait for the last one
is over, as it would (`simulate`): with a lower quota it falls behind, with a higher one it is never ahead of
what it sent. What quotas other than byte rates and the broker's did cannot be replayed from sums, and stays
as it was.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import Any, Final, final

import numpy as np
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
from proxy.quota.limits import PACE
from proxy.wire.views import RequestView, ResponseView

_STEP_SECONDS: Final = 0.25
"""Requests of an interval are charged together as long as they take no longer than this at the limit."""
_ON_TIME: Final = 1e-6
_SURELY: Final = 0.99
"""Sizes are rounded to whole bytes."""
_SUMS: Final = ("bytes", "requests", "throttled_requests", "throttle_ms")
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
            *[F.sum(name).alias(name) for name in _SUMS],
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

    def __init__(self, who: Identity, steps: Iterator[Step]) -> None:
        """`steps` are made as they are taken: those of a year would be more than fits into memory."""
        self.who: Final = who
        self._steps: Final = steps
        self.next: Step | None = next(steps, None)
        self.throttle_seconds = 0.0
        self.delayed_bytes = 0.0
        self.late_seconds = 0.0

    def sent(self, now: float, wait: float) -> Step | None:
        """The next step was sent, and has to wait so long; returns the one after it."""
        assert self.next is not None
        due, size = self.next
        if now - due > _ON_TIME:
            self.delayed_bytes += size
            self.late_seconds = max(self.late_seconds, now - due)
        self.throttle_seconds += wait
        self.next = next(self._steps, None)
        return self.next


def simulate(rows: Any, quotas: QuotaSet) -> list[tuple[str, str, str, int, int, int]]:
    """One bucket's intervals through the proxy's engine: a row of `_AFTER` for each tenant, or for none where
    nobody can have waited.
    """
    if nobody_waits(rows, quotas):
        return []
    engine = QuotaEngine([KIND.build()])
    engine.configure(quotas.limits(), 0.0)
    quota = str(rows["bucket_quota"].iloc[0])
    connections = _connections(rows, quotas.burst_seconds)
    waiting = [(connection.next[0], place) for place, connection in enumerate(connections) if connection.next]
    heapq.heapify(waiting)
    while waiting:
        now, place = waiting[0]
        connection = connections[place]
        assert connection.next is not None
        wait = _charge(engine, quota, round(connection.next[1]), connection.who, now)
        upcoming = connection.sent(now, wait)
        if upcoming is None:
            heapq.heappop(waiting)
        else:
            heapq.heapreplace(waiting, (max(now + wait, upcoming[0]), place))
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


def nobody_waits(rows: Any, quotas: QuotaSet) -> bool:
    """Whether it can be told without trying: most tenants are far below their limits.

    Nobody has waited, so each tenant's bytes are laid out evenly. Then no time t brings more than the highest
    rate x t and a step of everybody at both ends; a bucket of tokens that has these has them at any time.
    """
    if quotas.settings.algorithm != PACE or rows["throttle_ms"].any():
        return False
    limit = float(rows["limit"].iloc[0])
    sizes = rows["bytes"].to_numpy(float)
    most = np.ceil(sizes / max(limit * _STEP_SECONDS, 1.0))
    steps = sizes / np.maximum(np.minimum(rows["requests"].to_numpy(float), most), 1.0)
    rates = sizes * 1000 / rows["interval_ms"].to_numpy(float)
    together = pd.DataFrame({"start": rows["interval_start_ms"], "rate": rates, "step": steps})
    highest = together.groupby("start").sum().max()
    room = limit * _SURELY
    return bool(highest["rate"] <= room and 2 * highest["step"] <= room * quotas.burst_seconds)


def _connections(rows: Any, burst_seconds: float) -> list[Connection]:
    """Each tenant's intervals, divided among as many connections as its waits must have had."""
    rows = rows.sort_values("interval_start_ms", kind="stable")
    base = int(rows["interval_start_ms"].iloc[0])
    limit = float(rows["limit"].iloc[0])
    connections: list[Connection] = []
    for (user, client_id, _), found in rows.groupby(["user", "client_id", "api"], sort=False):
        intervals = intervals_of(found, base)
        held = held_at(intervals, limit)
        eager = AT_ONCE if held == limit else AS_THEY_CAME
        for place in range(max(count for _, count in intervals)):
            steps = _steps(intervals, place, limit, held, eager, burst_seconds)
            connections.append(Connection(Identity(user, client_id, ""), steps))
    return connections


def _steps(
    intervals: Sequence[tuple[Interval, int]],
    place: int,
    limit: float,
    held: float,
    eager: float,
    burst_seconds: float,
) -> Iterator[Step]:
    """What one of a tenant's connections sends: nothing in intervals that had fewer of them."""
    for interval, count in intervals:
        if place < count:
            per_step = max(limit * _STEP_SECONDS / count, 1.0)
            yield from lay_out(interval, held / count, eager, burst_seconds, per_step)


def intervals_of(tenant: Any, base: int) -> list[tuple[Interval, int]]:
    """What one connection did in each interval, and on how many the tenant did that; ascending, as given."""
    columns = [tenant[name].tolist() for name in ("interval_start_ms", "interval_ms", *_SUMS)]
    starts, *_, waits = columns
    found: list[tuple[Interval, int]] = []
    for place, (start, length, size, requests, throttled, waited) in enumerate(zip(*columns, strict=True)):
        count = connections_of(throttled, waited, length)
        before = place > 0 and waits[place - 1] > 0 and start - starts[place - 1] <= length
        after = place + 1 < len(starts) and waits[place + 1] > 0 and starts[place + 1] - start <= length
        interval = Interval(
            (start - base) / 1000,
            length / 1000,
            size / count,
            max(requests / count, 1.0),
            throttled / count,
            waited / 1000 / count,
            after and not before,
        )
        found.append((interval, count))
    return found
