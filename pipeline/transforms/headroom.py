"""Headroom: how close each tenant is to the limit of its bucket."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.inputs.quota_file import BROKER, CLUSTER, QuotaSet
from pipeline.schema import HEADROOM, names
from pipeline.transforms.buckets import charged, interval_rates, with_buckets
from pipeline.transforms.totals import total

_BUCKET: Final = ("bucket_quota", "bucket_user", "bucket_client_id", "limit", "scope")


def headroom(events: DataFrame, quotas: QuotaSet) -> DataFrame:
    """Turn deduplicated events into `schema.HEADROOM`: a row for each bucket that was used.

    A quota with the scope `broker` applies to each broker, and each proxy counts for itself, so a bucket's
    rates are those at its busiest proxy and broker. With the scope `cluster`, they are the sums.
    """
    tenants = (
        charged(events)
        .groupBy("cluster", "proxy", "broker", "user", "client_id", "bucket_quota", "interval_start_ms")
        .agg(total("bytes").alias("bytes"), F.max("interval_ms").alias("interval_ms"))
    )
    places = _rates(with_buckets(tenants.where(F.col("bytes") > 0), quotas), quotas)
    brokers = places.groupBy("cluster", "proxy", "broker", *_BUCKET).agg(
        F.percentile("rate", 0.99).alias("p99_rate"), F.max("rate").alias("max_rate")
    )
    buckets = brokers.groupBy("cluster", *_BUCKET).agg(
        F.max("p99_rate").alias("p99_rate"), F.max("max_rate").alias("max_rate")
    )
    return buckets.select(
        "cluster",
        F.col("bucket_user").alias("user"),
        F.col("bucket_client_id").alias("client_id"),
        F.col("bucket_quota").alias("quota"),
        "limit",
        "scope",
        "p99_rate",
        "max_rate",
        (F.col("p99_rate") / F.col("limit")).alias("used"),
    ).select(*names(HEADROOM))


def _rates(limited: DataFrame, quotas: QuotaSet) -> DataFrame:
    rates = interval_rates(limited.where(F.col("scope") == BROKER), _BUCKET, BROKER)
    if not quotas.has(CLUSTER):
        return rates
    return rates.unionByName(interval_rates(limited.where(F.col("scope") == CLUSTER), _BUCKET, CLUSTER))
