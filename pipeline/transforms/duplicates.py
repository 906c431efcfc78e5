"""Removes duplicates, and finds contradictions: events with the same identity and different values.

Of several events with one identity, the first counts: the one that a table of earlier runs has, or else the
one that is first in its file or topic partition. If they are in different files, a hash of the file's path
decides, so every run chooses the same event.
"""

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.schema import EVENT, IDENTITY, VERSION, names

PLACE: Final = "place"
"""The place at which an event was read, as a 64-bit number without the rows of a split: the hash of the file
and the split in it, or the topic partition and the offset. In a table without this column, the order of the
rows decides.
"""
CONTRADICTED: Final = "contradicted"
"""Whether an event with the same identity and different values was read."""
IS_KNOWN: Final = "is_known"
"""Whether a table of earlier runs has an event with the same identity."""
CONTRADICTION: Final = "another event has the same identity and other values, and came first"
EVENT_HOUR: Final = "event_hour"
"""The hour in which the interval begins, in hours since the epoch."""
SAME_PLACE: Final = ("cluster", "user", "client_id", "topic", "partition")
"""Every table groups by these columns."""
HOURLY: Final = (EVENT_HOUR, *SAME_PLACE)
_AT: Final = (*HOURLY, "broker", "interval_start_ms")
_SORT_KEY: Final = "sort_key"
"""The upper bits are a hash of HOURLY and the broker, and the lower bits the time of the interval within the
hour. Rows that are sorted by it first are compared by texts only within an interval.
"""
_TIME_BITS: Final = 22
"""The lower bits of _SORT_KEY: an hour has 3.6 million milliseconds."""
_ONE_EVENT: Final = (*_AT, "proxy", "listener", "api")
"""The columns of IDENTITY, and what follows from them: equal for the same event."""
_HOUR_MS: Final = 3_600_000
VALUES: Final = tuple(name for name in names(EVENT) if name not in (*IDENTITY, "v"))
"""The columns of an event that are not in its identity. `quota`, which may be null, is last, so that null
gets a different hash.
"""
ORDER: Final = "order"
"""A number that is unique. The event with the lowest one is the first."""
DIGEST: Final = "digest"
"""A hash of an event's values."""
_KNOWN: Final = "known_digest"
_COUNTED: Final = "counted_digest"
ROW_BITS: Final = 29
"""The low bits of a place: the row in its split."""
_SPLIT_BITS: Final = 14
"""The bits of the split in its file, which are added to those of the file's hash."""
_SPLIT_SIZE_BITS: Final = 22
"""Spark's splits of a file have at least 4 MiB."""
_FILES: Final = (1 << (63 - ROW_BITS)) - (1 << _SPLIT_BITS)
"""The number of hashes of files. The split is added to the hash, so nearly all of the bits are the hash's."""


def place_in_files() -> Column:
    """PLACE for a table read from files."""
    split = F.shiftright("_metadata.file_block_start", _SPLIT_SIZE_BITS).bitwiseAND((1 << _SPLIT_BITS) - 1)
    file = F.pmod(F.xxhash64("_metadata.file_path"), F.lit(_FILES))
    return F.shiftleft(file + split, ROW_BITS)


def place_of_hash(hashed: int) -> int:
    """PLACE of the first row of a file, from the hash of its path."""
    return hashed % _FILES << ROW_BITS


def place_in_iceberg() -> Column:
    """PLACE for an Iceberg table."""
    split = F.shiftright("_pos", _SPLIT_SIZE_BITS).bitwiseAND((1 << _SPLIT_BITS) - 1)
    return F.shiftleft(F.pmod(F.xxhash64("_file"), F.lit(_FILES)) + split, ROW_BITS)


def place_in_topic() -> Column:
    """PLACE for records of a topic."""
    return F.shiftleft(F.col("partition").cast("bigint"), 48) + F.col("offset")


def deduplicate(events: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """Return each event once, with CONTRADICTED, and IS_KNOWN if there is a table `known`: whether it has the
    event.

    The result is partitioned by the columns by which every table groups, so later steps need no further
    shuffle.
    """
    together = with_hour(ordered(events).repartition(*SAME_PLACE)).withColumn(_SORT_KEY, _sort_key())
    one_event = (_SORT_KEY, *_ONE_EVENT)
    first = (
        together.sortWithinPartitions(*one_event)
        .groupBy(*one_event)
        .agg(
            *[F.min_by(name, ORDER).alias(name) for name in VALUES],
            F.min_by(DIGEST, ORDER).alias(DIGEST),
            (F.min(DIGEST) != F.max(DIGEST)).alias(CONTRADICTED),
        )
    )
    unique = first.withColumn("v", F.lit(VERSION))
    if known is None:
        return unique.select(*names(EVENT), CONTRADICTED)
    compared = _beside(unique, known.select(*IDENTITY, digest().alias(_KNOWN)))
    return compared.select(
        *[F.col(f"one.{name}") for name in names(EVENT)],
        (F.col(CONTRADICTED) | F.coalesce(F.col(_KNOWN) != F.col(DIGEST), F.lit(False))).alias(CONTRADICTED),
        F.col(_KNOWN).isNotNull().alias(IS_KNOWN),
    )


def with_hour(events: DataFrame) -> DataFrame:
    """Add EVENT_HOUR if it is missing."""
    if EVENT_HOUR in events.columns:
        return events
    return events.select("*", F.expr(f"interval_start_ms div {_HOUR_MS}").alias(EVENT_HOUR))


def _sort_key() -> Column:
    time = F.col("interval_start_ms") - F.col(EVENT_HOUR) * _HOUR_MS
    return F.shiftleft(F.xxhash64(*HOURLY, "broker"), _TIME_BITS).bitwiseOR(time)


def start_of(hour: Column) -> Column:
    """The time (UTC) at which an EVENT_HOUR begins."""
    return F.timestamp_millis(hour * _HOUR_MS)


def contradictions(events: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """Return `raw, reason` of the events that do not count because another event has their identity."""
    rows = ordered(events, "raw")
    counted = rows.groupBy(*IDENTITY).agg(
        F.min_by(DIGEST, ORDER).alias(_COUNTED), (F.min(DIGEST) != F.max(DIGEST)).alias(CONTRADICTED)
    )
    if known is None:
        counted = counted.where(CONTRADICTED)
    else:
        compared = _beside(counted, known.select(*IDENTITY, digest().alias(_KNOWN)))
        counted = compared.select(
            *[F.col(f"one.{name}") for name in IDENTITY], F.coalesce(_KNOWN, _COUNTED).alias(_COUNTED)
        )
    found = _beside(rows, counted, "inner").where(F.col(DIGEST) != F.col(_COUNTED))
    return found.select(F.make_valid_utf8("raw").alias("raw"), F.lit(CONTRADICTION).alias("reason"))


def ordered(events: DataFrame, *more: str) -> DataFrame:
    """Return the columns of EVENT and `more`, with ORDER and DIGEST."""
    return events.select(*names(EVENT), *more, order(events).alias(ORDER), digest().alias(DIGEST))


def order(events: DataFrame) -> Column:
    """ORDER of the events of a table, with PLACE if it has it."""
    row = F.monotonically_increasing_id()
    if PLACE in events.columns:
        row = F.col(PLACE) + row.bitwiseAND((1 << ROW_BITS) - 1)
    return row


def digest() -> Column:
    """A hash of an event's values."""
    return F.xxhash64(*VALUES)


def _beside(one: DataFrame, other: DataFrame, how: str = "left") -> DataFrame:
    """Join by identity."""
    same = [F.col(f"one.{name}").eqNullSafe(F.col(f"other.{name}")) for name in IDENTITY]
    return one.alias("one").join(other.alias("other"), reduce(Column.__and__, same), how)
