"""Usage: what each tenant did on each partition, by hour or by day."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipeline.schema import COUNTS, USAGE, names
from pipeline.transforms.duplicates import EVENT_HOUR, start_of
from pipeline.transforms.hours import HOUR, hours
from pipeline.transforms.totals import total


def usage(events: DataFrame, by: str = HOUR) -> DataFrame:
    """Turn events into `schema.USAGE`. A rate covers one interval, all APIs and proxies."""
    return with_shares(hours(events, by))


def with_shares(sums: DataFrame) -> DataFrame:
    """Turn the result of hours() into `schema.USAGE`."""
    timed = sums.withColumn("hour", start_of(F.col(EVENT_HOUR)))
    shares = {"share_in": _share("bytes_in"), "share_out": _share("bytes_out")}
    return timed.withColumns(shares).select(*names(USAGE))


def with_rates(events: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Sum by keys and interval, with `bytes_in_rate` and `bytes_out_rate` (bytes/s) of the interval."""
    sums = events.groupBy(*keys, "interval_start_ms").agg(
        *[total(name).alias(name) for name in COUNTS], F.max("interval_ms").alias("interval_ms")
    )
    return sums.select(
        *keys,
        "interval_start_ms",
        "interval_ms",
        *COUNTS,
        *[
            (F.col(way) * F.lit(1000.0) / F.col("interval_ms")).alias(f"{way}_rate")
            for way in ("bytes_in", "bytes_out")
        ],
    )


def _share(name: str) -> Column:
    """The part of the cluster's sum in that period; 0 if the sum is 0."""
    everything = F.sum(F.col(name).cast("double")).over(Window.partitionBy("hour", "cluster"))
    return F.when(everything > 0, F.col(name) / everything).otherwise(0.0)


def partition_rates(events: DataFrame) -> DataFrame:
    """Return `cluster, topic, partition, bytes_in_rate`: the p95 over the intervals with produce traffic."""
    keys = ("cluster", "topic", "partition")
    produced = events.where((F.col("api") == "Produce") & F.col("partition").isNotNull())
    rates = with_rates(produced, keys).where(F.col("bytes_in") > 0)
    return rates.groupBy(*keys).agg(F.percentile("bytes_in_rate", 0.95).alias("bytes_in_rate"))
