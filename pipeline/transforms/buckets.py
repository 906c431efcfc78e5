"""Finds the quota bucket of a tenant, by the proxy's own order of precedence (KIP-55), and measures rates
where quotas are measured.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from pipeline.quota_file import BROKER, CLUSTER, QuotaSet
from proxy.quota.identity import Identity
from proxy.quota.kinds.client_bytes import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limits import Limits

APIS: Final = {PRODUCER_BYTE_RATE: ("Produce",), CONSUMER_BYTE_RATE: ("Fetch", "ShareFetch")}
"""The quotas that events can be compared with, and the APIs that each charges."""
DIRECTIONS: Final = {PRODUCER_BYTE_RATE: "bytes_in", CONSUMER_BYTE_RATE: "bytes_out"}
_PLACE: Final = ("cluster", "proxy", "broker")
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

    Proxies begin their intervals at different times. The rates of intervals that begin within the same
    multiple of their length add up; if a proxy begins two in it, their mean does.
    """
    rates = (
        charged.where(F.col("bytes") > 0)
        .groupBy(*_PLACE, *keys, "interval_start_ms")
        .agg(
            (F.sum("bytes") * F.lit(1000.0) / F.max("interval_ms")).alias("rate"),
            F.max("interval_ms").alias("interval_ms"),
        )
    )
    if scope == BROKER:
        return rates.select(*_PLACE, *keys, "rate")
    length = F.greatest(F.round(F.col("interval_ms") / 1000), F.lit(1.0)) * 1000
    slots = rates.withColumn("slot", F.floor(F.col("interval_start_ms") / length) * length)
    means = slots.groupBy(*_PLACE, *keys, "slot").agg(F.avg("rate").alias("rate"))
    sums = means.groupBy("cluster", *keys, "slot").agg(F.sum("rate").alias("rate"))
    return sums.select(
        "cluster",
        F.lit(None).cast("string").alias("proxy"),
        F.lit(None).cast("int").alias("broker"),
        *keys,
        "rate",
    )


def _resolve(batch: Any, limits: Limits, of_cluster: Limits) -> Any:
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
