"""Headroom: how close each tenant is to the limit of its bucket."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.quota_file import QuotaSet
from pipeline.schema import HEADROOM, names
from pipeline.transforms.buckets import charged, with_buckets


def headroom(events: DataFrame, quotas: QuotaSet) -> DataFrame:
    """Turn deduplicated events into `schema.HEADROOM`: a row for each bucket that was used.

    A quota applies to each broker, and each proxy counts for itself, so a bucket's rates are those at its
    busiest proxy and broker.
    """
    keys = ("cluster", "proxy", "broker", "bucket_quota", "bucket_user", "bucket_client_id", "limit")
    tenants = (
        charged(events)
        .groupBy("cluster", "proxy", "broker", "user", "client_id", "bucket_quota", "interval_start_ms")
        .agg(F.sum("bytes").alias("bytes"), F.max("interval_ms").alias("interval_ms"))
    )
    intervals = (
        with_buckets(tenants.where(F.col("bytes") > 0), quotas)
        .groupBy(*keys, "interval_start_ms")
        .agg((F.sum("bytes") * F.lit(1000.0) / F.max("interval_ms")).alias("rate"))
    )
    brokers = intervals.groupBy(*keys).agg(
        F.percentile("rate", 0.99).alias("p99_rate"), F.max("rate").alias("max_rate")
    )
    buckets = brokers.groupBy("bucket_quota", "bucket_user", "bucket_client_id", "limit").agg(
        F.max("p99_rate").alias("p99_rate"), F.max("max_rate").alias("max_rate")
    )
    return buckets.select(
        F.col("bucket_user").alias("user"),
        F.col("bucket_client_id").alias("client_id"),
        F.col("bucket_quota").alias("quota"),
        "limit",
        "p99_rate",
        "max_rate",
        (F.col("p99_rate") / F.col("limit")).alias("used"),
    ).select(*names(HEADROOM))
