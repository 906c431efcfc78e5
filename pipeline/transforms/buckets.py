"""Finds the quota bucket of a tenant, by the proxy's own order of precedence (KIP-55), and measures rates
where quotas are measured.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from pipeline.inputs.quota_file import BROKER, CLUSTER, QuotaSet
from pipeline.transforms.totals import total
from proxy.quota.identity import Identity
from proxy.quota.kinds.client_bytes import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limits import Limits

APIS: Final = {PRODUCER_BYTE_RATE: ("Produce",), CONSUMER_BYTE_RATE: ("Fetch", "ShareFetch")}
"""The quotas that events can be compared with, and the APIs that each charges."""
_PLACE: Final = ("cluster", "proxy", "broker")
"""Where a quota of the scope `broker` measures a rate."""
_RUN: Final = "-[0-9a-f]{8}$"
"""The end of a proxy's name in events: the run of the process. Before it is the name of the host."""
_BUCKETS: Final = StructType(
    [
        StructField("tenant_user", StringType()),
        StructField("tenant_client_id", StringType()),
        StructField("bucket_quota", StringType()),
        StructField("bucket_user", StringType()),
        StructField("bucket_client_id", StringType()),
        StructField("limit", DoubleType()),
        StructField("scope", StringType()),
    ]
)


def charged(events: DataFrame) -> DataFrame:
    """Return the events that a byte rate charges, with `bucket_quota` and the charged `bytes`."""
    quota = F.coalesce(
        *[F.when(F.col("api").isin(*apis), F.lit(quota)) for quota, apis in APIS.items()],
    )
    found = events.withColumn("bucket_quota", quota).where(F.col("bucket_quota").isNotNull())
    charge = F.when(F.col("bucket_quota") == PRODUCER_BYTE_RATE, F.col("bytes_in")).otherwise(
        F.col("bytes_out")
    )
    return found.withColumn("bytes", charge)


def with_buckets(charged: DataFrame, quotas: QuotaSet) -> DataFrame:
    """Add `bucket_user, bucket_client_id` (empty: not part of the bucket), `limit` and `scope` to charged().

    Tenants without a limit are dropped.
    """
    tenants = charged.select(F.col("user").alias("tenant_user"), F.col("client_id").alias("tenant_client_id"))

    def resolve(batches: Iterable[Any]) -> Iterable[Any]:
        limits, of_cluster = quotas.limits(), quotas.limits_of(CLUSTER)
        for batch in batches:
            yield _resolve(batch, limits, of_cluster)

    buckets = tenants.distinct().mapInPandas(resolve, _BUCKETS)
    limited = charged.join(
        buckets.withColumnRenamed("bucket_quota", "of_quota"),
        (F.col("user") == F.col("tenant_user"))
        & (F.col("client_id") == F.col("tenant_client_id"))
        & (F.col("bucket_quota") == F.col("of_quota")),
    )
    return limited.drop("tenant_user", "tenant_client_id", "of_quota")


def interval_rates(charged: DataFrame, keys: Sequence[str], scope: str) -> DataFrame:
    """Return `cluster, proxy, broker`, the keys, and `rate` (bytes/s) of each interval with traffic: at each
    broker of each proxy (BROKER), or over all of them (CLUSTER), with `proxy` and `broker` null.

    `proxy` is the host of the proxy, because each run of a process has another name.

    Proxies begin their intervals at different times, and their intervals may have different lengths. Over all
    of them, a rate therefore covers a slot as long as the longest intervals of the cluster: the sum, over
    proxies and brokers, of the bytes in the intervals that begin in the slot, divided by its length. A proxy
    may begin an interval too many in a slot; its bytes are then divided by the length of its intervals.
    """
    sums = (
        charged.where(F.col("bytes") > 0)
        .groupBy(*_PLACE, *keys, "interval_start_ms")
        .agg(total("bytes").alias("bytes"), F.max("interval_ms").alias("interval_ms"))
    )
    if scope == BROKER:
        rate = F.col("bytes") * F.lit(1000.0) / F.col("interval_ms")
        host = F.regexp_replace("proxy", _RUN, "")
        return sums.select("cluster", host.alias("proxy"), "broker", *keys, rate.alias("rate"))
    slots = sums.join(F.broadcast(_slot_lengths(sums)), "cluster").withColumn(
        "slot", F.floor(F.col("interval_start_ms") / F.col("slot_ms"))
    )
    covered = F.greatest(F.sum("interval_ms"), F.max("slot_ms"))
    places = slots.groupBy(*_PLACE, *keys, "slot").agg(
        (total("bytes") * F.lit(1000.0) / covered).alias("rate")
    )
    rates = places.groupBy("cluster", *keys, "slot").agg(F.sum("rate").alias("rate"))
    return rates.select(
        "cluster",
        F.lit(None).cast("string").alias("proxy"),
        F.lit(None).cast("int").alias("broker"),
        *keys,
        "rate",
    )


def _slot_lengths(sums: DataFrame) -> DataFrame:
    """Return `cluster, slot_ms`: the length of the intervals of the proxy with the longest ones, in whole
    seconds. The median of a proxy ignores a single interval that lasted longer.
    """
    lengths = sums.groupBy("cluster", "proxy").agg(F.median("interval_ms").alias("interval_ms"))
    seconds = F.greatest(F.round(F.max("interval_ms") / 1000), F.lit(1.0))
    return lengths.groupBy("cluster").agg((seconds * 1000).alias("slot_ms"))


def _resolve(batch: Any, limits: Limits, of_cluster: Limits) -> Any:
    # The command's process does not wait for its import.
    import pandas as pd

    rows = []
    for user, client_id in zip(batch["tenant_user"], batch["tenant_client_id"], strict=True):
        if limits.settings.exemptions.exempt(Identity(user, client_id, "")):
            continue
        for quota in APIS:
            names = limits.bucket(quota, user, client_id)
            limit = UNLIMITED if names is None else limits.limit(quota, *names)
            if names is not None and limit != UNLIMITED:
                scope = CLUSTER if of_cluster.limit(quota, *names) else BROKER
                rows.append((user, client_id, quota, *names, limit, scope))
    return pd.DataFrame(rows, columns=_BUCKETS.names)
