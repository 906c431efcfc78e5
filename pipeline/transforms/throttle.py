"""Throttle: whom quotas made wait or rejected, hour by hour."""

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.schema import THROTTLE, names

BOUND: Final = ("throttled_requests", "throttle_ms", "rejected_requests", "rejected_bytes")


def bound(events: DataFrame) -> DataFrame:
    """The events that say that a quota made somebody wait or rejected something."""
    return events.where(reduce(Column.__or__, [F.col(name) > 0 for name in BOUND]))


def throttle(events: DataFrame) -> DataFrame:
    """Deduplicated events to `schema.THROTTLE`: only hours in which a quota bound the tenant."""
    hours = bound(events).select(
        F.date_trunc("hour", F.timestamp_millis("interval_start_ms")).alias("hour"),
        "user",
        "client_id",
        "quota",
        *BOUND,
    )
    sums = hours.groupBy("hour", "user", "client_id", "quota").agg(
        *[F.sum(name).alias(name) for name in BOUND]
    )
    return sums.select(*names(THROTTLE))
