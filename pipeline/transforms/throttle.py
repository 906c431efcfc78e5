"""Throttle: which tenants were throttled or rejected, by hour."""

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.schema import THROTTLE, names
from pipeline.transforms.duplicates import EVENT_HOUR, start_of, with_hour
from pipeline.transforms.totals import total

BOUND: Final = ("throttled_requests", "throttle_ms", "rejected_requests", "rejected_bytes")
"""The counts of what quotas did."""


def bound(events: DataFrame) -> DataFrame:
    """Return the events in which a quota throttled or rejected something."""
    return events.where(reduce(Column.__or__, [F.col(name) > 0 for name in BOUND]))


def throttle(events: DataFrame) -> DataFrame:
    """Turn deduplicated events into `schema.THROTTLE`: only hours in which a quota throttled or rejected."""
    hours = bound(with_hour(events)).select(
        start_of(F.col(EVENT_HOUR)).alias("hour"),
        "cluster",
        "user",
        "client_id",
        "quota",
        *BOUND,
    )
    sums = hours.groupBy("hour", "cluster", "user", "client_id", "quota").agg(
        *[total(name).alias(name) for name in BOUND]
    )
    return sums.select(*names(THROTTLE))
