"""What-if: replays events through the proxy's own rules with another set of quotas.

An event has the bytes of an interval, but not the times at which they arrived. `layout.py` reconstructs the
requests of each interval: evenly if nothing was throttled, otherwise in bursts, each followed by requests
that wait as long as in the events. `simulate` sends a request at its time in the events, but not before the
wait of the previous one is over. With a lower quota, a client therefore falls behind; with a higher one, it
sends as much as in the events.

Events do not have the charges of `request_percentage`, `controller_mutation_rate` and
`connection_creation_rate`, nor the partitions that were omitted from fetches. These quotas are not replayed,
and their `after_` columns are null.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Any, Final

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.inputs.quota_file import BROKER, QuotaSet
from pipeline.schema import REPLAY, names
from pipeline.transforms.buckets import APIS, charged, with_buckets
from pipeline.transforms.replay.broker import rejected
from pipeline.transforms.replay.played import (
    AFTER,
    PLACE,
    STATE,
    STEP_SECONDS,
    SUMS,
    Row,
    after_table,
    has_places,
    intervals_of,
    play,
)
from pipeline.transforms.replay.senders import Sender, connections
from pipeline.transforms.replay.topics import replay_topics, replayed_topics
from pipeline.transforms.totals import total
from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.kinds.broker_bytes_in import SHARE
from proxy.quota.kinds.client_bytes import KIND, PRODUCER_BYTE_RATE
from proxy.quota.limits.config_keys import CONSUMER_BYTE_RATE, TOPIC_CONSUMER_BYTE_RATE
from proxy.quota.limits.enforcement import PACE
from proxy.wire.api_keys import FETCH, PRODUCE
from proxy.wire.views import RequestView, ResponseView

_SURELY: Final = 0.99
"""The part of a limit that no client exceeds, even if sizes are rounded up to whole bytes."""
_SIZE_FIELD: Final = 4
"""Bytes of a frame's length. Events count them; a ResponseView does not."""
_TENANT: Final = ("cluster", "user", "client_id")


def replay(events: DataFrame, quotas: QuotaSet) -> DataFrame:
    """Turn deduplicated events into `schema.REPLAY`: a row for each tenant and quota that throttled or
    rejected it, in the events or in the replay.
    """
    before = events.groupBy(*_TENANT, "quota").agg(
        total("throttle_ms").alias("throttle_ms"), total("rejected_bytes").alias("rejected_bytes")
    )
    before = before.where((F.col("throttle_ms") > 0) | (F.col("rejected_bytes") > 0))
    after = replay_buckets(events, quotas)
    if any(name in configs for configs in quotas.topics.values() for name in replayed_topics(quotas)):
        after = after.unionByName(replay_topics(events, quotas))
    if quotas.brokers:
        after = after.unionByName(rejected(events, quotas), allowMissingColumns=True)
    same = reduce(
        Column.__and__,
        [F.col(f"before.{name}").eqNullSafe(F.col(f"after.{name}")) for name in (*_TENANT, "quota")],
    )
    both = before.alias("before").join(_tenants(after).alias("after"), same, "full")
    is_replayed = F.coalesce("before.quota", "after.quota").isin(*APIS, SHARE, *replayed_topics(quotas))
    return both.select(
        *[F.coalesce(f"before.{name}", f"after.{name}").alias(name) for name in (*_TENANT, "quota")],
        *[
            F.coalesce(f"before.{name}", F.lit(0)).alias(f"before_{name}")
            for name in ("throttle_ms", "rejected_bytes")
        ],
        *[
            F.when(is_replayed, F.coalesce(f"after.{name}", F.lit(0))).alias(f"after_{name}")
            for name in ("throttle_ms", "rejected_bytes", "delayed_bytes", "late_ms")
        ],
    ).select(*names(REPLAY))


def untried(quotas: QuotaSet) -> list[str]:
    """Return the quotas of the file that cannot be replayed."""
    names = {name for limits in quotas.clients.values() for name in limits} - APIS.keys()
    omits = {CONSUMER_BYTE_RATE.name, TOPIC_CONSUMER_BYTE_RATE.name} - set(replayed_topics(quotas))
    return sorted(names | {f"{name} with action omit" for name in omits})


def _tenants(after: DataFrame) -> DataFrame:
    """Sum over all brokers what the quotas did to each tenant."""
    sums = ("throttle_ms", "delayed_bytes", "rejected_bytes")
    found = after.groupBy(*_TENANT, "quota").agg(
        *[total(F.coalesce(name, F.lit(0))).alias(name) for name in sums], F.max("late_ms").alias("late_ms")
    )
    return found.where(reduce(Column.__or__, [F.col(name) > 0 for name in sums]))


def replay_buckets(events: DataFrame, quotas: QuotaSet) -> DataFrame:
    """Return rows of AFTER: each bucket of users and client ids is replayed on its own. A bucket of scope
    `broker` is that of a broker at a proxy, and one of scope `cluster` is that of all of them.
    """
    intervals = (
        charged(events)
        .groupBy(*STATE, "user", "client_id", "bucket_quota", "api", "interval_start_ms")
        .agg(F.max("interval_ms").alias("interval_ms"), *[total(name).alias(name) for name in SUMS])
    )

    def run(rows: Any) -> Any:
        return after_table(rows, simulate(rows, quotas))

    places = [F.when(F.col("scope") == BROKER, F.col(name)).alias(f"of_{name}") for name in PLACE]
    buckets = with_buckets(intervals, quotas).groupBy(
        "cluster", *places, "bucket_quota", "bucket_user", "bucket_client_id"
    )
    return buckets.applyInPandas(run, AFTER)


def simulate(rows: Any, quotas: QuotaSet) -> list[Row]:
    """Replay the intervals of one bucket through the proxy's engine. Return a row of AFTER for each
    connection, or no rows if no tenant can wait.
    """
    if nobody_waits(rows, quotas):
        return []
    engine = QuotaEngine([KIND.build()])
    engine.configure(quotas.limits(), 0.0)
    quota = str(rows["bucket_quota"].iloc[0])
    found = connections([*_senders(rows)], quotas.burst_seconds, together=has_places(rows))
    sending = [connection for _, connection in found]

    def charge(place: int, size: float, now: float) -> float:
        return _charge(engine, quota, round(size), sending[place].who, now)

    play(sending, charge)
    return [connection.row(quota) for connection in sending]


def _charge(engine: QuotaEngine, quota: str, size: int, who: Identity, now: float) -> float:
    """Charge bytes to a byte rate; return the throttle time in seconds."""
    if quota == PRODUCER_BYTE_RATE:
        return engine.admit(RequestView(PRODUCE, 0, 0, who.client_id, size), who, now).throttle_seconds
    request = RequestView(FETCH, 0, 0, who.client_id, 0)
    response = ResponseView(0, False, max(size - _SIZE_FIELD, 0))
    return engine.charge(request, response, who, now).throttle_seconds


def nobody_waits(rows: Any, quotas: QuotaSet) -> bool:
    """Whether no tenant can wait, without a simulation: most tenants are far below their limits.

    If no tenant waited in the events, the bytes are spread evenly. In a time t there are then at most the
    highest rate x t, and one more step of each tenant at the beginning and at the end. If the token bucket
    covers this, it is never empty.
    """
    if quotas.settings.algorithm != PACE or rows["throttle_ms"].any():
        return False
    limit = float(rows["limit"].iloc[0])
    sizes = rows["bytes"].to_numpy(float)
    most = np.ceil(sizes / max(limit * STEP_SECONDS, 1.0))
    steps = sizes / np.maximum(np.minimum(rows["requests"].to_numpy(float), most), 1.0)
    rates = sizes * 1000 / rows["interval_ms"].to_numpy(float)
    together = pd.DataFrame({"start": rows["interval_start_ms"], "rate": rates, "step": steps})
    # Proxies begin their intervals at different times, so the highest of each place may come together.
    places = rows.groupby([*PLACE]).ngroup()
    highest = together.groupby([places, "start"]).sum().groupby(level=0).max().sum()
    room = limit * _SURELY
    return bool(highest["rate"] <= room and 2 * highest["step"] <= room * quotas.burst_seconds)


def _senders(rows: Any) -> Iterator[Sender]:
    """Yield what each tenant sent at each place, by API."""
    rows = rows.sort_values("interval_start_ms", kind="stable")
    base = int(rows["interval_start_ms"].iloc[0])
    limit = float(rows["limit"].iloc[0])
    for (*_, user, client_id, _), found in rows.groupby([*PLACE, "user", "client_id", "api"], sort=False):
        yield Sender(user, client_id, intervals_of(found, base), limit)
