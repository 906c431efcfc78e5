"""Sums by hour of events that come twice, without a sort and a shuffle of all events.

First, the hashes of all identities are compared. Few events have the hash of another one. Only these are
compared as they are; all others are added up where they are read. The events are read twice.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.schema import IDENTITY
from pipeline.transforms.duplicates import CONTRADICTED, DIGEST, HOURLY, ORDER, digest, ordered, with_hour
from pipeline.transforms.totals import total

SUMMED: Final = ("bytes_in", "bytes_out", "requests")
"""The counts that a bill needs."""
IDENTITY_HASH: Final = "identity_hash"
"""Events with different hashes are different events."""
_IS_DOUBTED: Final = "is_doubted"
_EVENT: Final = "event"
_ONE_EVENT: Final = tuple(name for name in IDENTITY if name not in HOURLY)
"""What tells the events of an hour of HOURLY apart."""


def with_identity_hash(events: DataFrame) -> DataFrame:
    """Add IDENTITY_HASH."""
    return events.withColumn(IDENTITY_HASH, F.xxhash64(*IDENTITY))


def doubted(events: DataFrame) -> DataFrame:
    """Return each IDENTITY_HASH that two or more events have."""
    together = events.select(IDENTITY_HASH).repartition(IDENTITY_HASH)
    number = together.groupBy(IDENTITY_HASH).count()
    return number.where(F.col("count") > 1).select(IDENTITY_HASH, F.lit(True).alias(_IS_DOUBTED))


def hourly_sums(events: DataFrame, doubts: DataFrame) -> DataFrame:
    """Return HOURLY, the sums of SUMMED, and CONTRADICTED: one row for each doubted event, which counts once,
    and one for all others of an hour.
    """
    flagged = with_identity_hash(events).join(F.broadcast(doubts), IDENTITY_HASH, "left")
    is_doubted = F.col(_IS_DOUBTED).isNotNull()
    rows = with_hour(ordered(flagged, _IS_DOUBTED)).select(
        *HOURLY,
        *SUMMED,
        F.when(is_doubted, F.struct(*_ONE_EVENT)).alias(_EVENT),
        F.when(is_doubted, F.col(ORDER)).alias(ORDER),
        F.when(is_doubted, digest()).alias(DIGEST),
    )
    groups = rows.groupBy(*HOURLY, _EVENT).agg(
        *[total(name).alias(name) for name in SUMMED],
        *[F.min_by(name, ORDER).alias(f"first_{name}") for name in SUMMED],
        F.coalesce(F.min(DIGEST) != F.max(DIGEST), F.lit(False)).alias(CONTRADICTED),
    )
    of_one = F.col(_EVENT).isNotNull()
    sums = [F.when(of_one, F.col(f"first_{name}")).otherwise(F.col(name)).alias(name) for name in SUMMED]
    return groups.select(*HOURLY, *sums, CONTRADICTED)
