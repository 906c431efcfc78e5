"""Usage: what each tenant did on each partition, by hour or by day."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipeline.schema import COUNTS, USAGE, names
from pipeline.transforms.duplicates import EVENT_HOUR, HOURLY, IN_ORDER, start_of, with_hash
from pipeline.transforms.totals import total

HOUR: Final = "hour"
DAY: Final = "day"
_PERCENTS: Final = (95, 99)
_RATES: Final = {"bytes_in": "_in_rates", "bytes_out": "_out_rates"}
HOURS_PER_DAY: Final = 24


def usage(events: DataFrame, by: str = HOUR) -> DataFrame:
    """Turn deduplicated events into `schema.USAGE`. A rate covers one interval, all APIs and proxies."""
    in_order = IN_ORDER[:-1]
    intervals = with_rates(with_hash(events), in_order)
    if by == DAY:
        begins = F.col(EVENT_HOUR) - F.col(EVENT_HOUR) % HOURS_PER_DAY
        groups = intervals.groupBy(begins.alias(EVENT_HOUR), *HOURLY[1:], "broker")
    else:
        groups = intervals.sortWithinPartitions(*in_order).groupBy(*in_order)
    hours = groups.agg(
        *[total(name).alias(name) for name in COUNTS],
        *[F.max(f"{way}_rate").alias(f"max_{way}_rate") for way in ("bytes_in", "bytes_out")],
        *[F.collect_list(f"{way}_rate").alias(rates) for way, rates in _RATES.items()],
    )
    percentiles = {
        f"p{percent}_{way}_rate": _percentile(rates, percent)
        for way, rates in _RATES.items()
        for percent in _PERCENTS
    }
    hours = hours.withColumns({rates: F.sort_array(rates) for rates in _RATES.values()})
    shared = hours.withColumn("hour", start_of(F.col(EVENT_HOUR))).withColumns(
        {**percentiles, "share_in": _share("bytes_in"), "share_out": _share("bytes_out")}
    )
    return shared.select(*names(USAGE))


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


def _percentile(rates: str, percent: int) -> Column:
    """The percentile of a sorted array, as Spark's percentile(), which is slower, would interpolate it."""
    position = (F.size(rates) - 1) * F.lit(percent / 100)
    below = F.floor(position).cast("int")
    low = F.get(rates, below)
    high = F.get(rates, F.least(below + 1, F.size(rates) - 1))
    return low + (position - below) * (high - low)


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
