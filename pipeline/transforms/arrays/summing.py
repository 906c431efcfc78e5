"""Tables of sums that are computed in arrays, from rows of Spark or from what tasks read themselves."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pipeline.schema import IDENTITY
from pipeline.transforms.arrays.parcels import (
    COUNTED,
    HOUR_MS,
    PARCEL,
    PART,
    Counted,
    Packing,
    Unpacked,
    chunks,
    pack,
)
from pipeline.transforms.arrays.rows import Rows
from pipeline.transforms.duplicates import ORDER, VALUES, order
from pipeline.window import ALWAYS, Window

_SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_IS_EVENT: Final = "is_event"
_MOST_PARTS: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class Summing:
    """A table that is computed from events: `sums` returns its columns, without COUNTED, from all events of
    one or more periods. Each event counts once: the first one.
    """

    columns: StructType
    sums: Callable[[Rows], Sequence[Any]]
    counts: Sequence[str]
    """The columns of events that `sums` needs, beside those that tell events apart."""
    are_wanted: Callable[[Rows], NDArray[Any]] | None = None
    """Tells which events count; the same for an event and its duplicates. None: all."""
    positive: Sequence[str] = ()
    """The columns of which one is above 0 in each wanted event; none if there are no such columns."""
    period_ms: int = HOUR_MS
    by_tenant: bool = False
    """Whether `sums` returns few rows for each tenant."""

    @property
    def result(self) -> StructType:
        """The columns of summed_parcels(): those of the table, and COUNTED."""
        return StructType([*self.columns.fields, *COUNTED.fields])


def summed(events: DataFrame, summing: Summing, window: Window = ALWAYS) -> DataFrame:
    """Return `summing.result` of the events of the window; rows with a `reason` are no events."""
    is_event = F.col("reason").isNull() if "reason" in events.columns else F.lit(True)
    sent = events.select(*IDENTITY, *VALUES, order(events).alias(ORDER), is_event.alias(_IS_EVENT))
    found = packing(events.sparkSession, summing, window, _are_flagged)
    return summed_parcels(sent.mapInArrow(partial(_packed, packing=found), PARCEL), summing)


def packing(
    spark: SparkSession, summing: Summing, window: Window, are_events: Callable[[Rows], NDArray[Any]]
) -> Packing:
    """Return how events are packed, with a part for each shuffle partition of the session."""
    parts = int(spark.conf.get(_SHUFFLE_PARTITIONS) or 1)
    return Packing(
        summing.counts,
        window,
        parts=min(parts, _MOST_PARTS),
        are_events=are_events,
        are_wanted=summing.are_wanted,
        period_ms=summing.period_ms,
    )


def summed_parcels(parcels: DataFrame, summing: Summing) -> DataFrame:
    """Return `summing.result` of the events in parcels. Rows in which `cluster` is null have only COUNTED."""
    return parcels.repartition(PART).mapInArrow(partial(_summed, summing=summing), summing.result)


def table_of(found: DataFrame, summing: Summing) -> DataFrame:
    """Return the table without COUNTED, from the result of summed_parcels()."""
    return found.where(F.col("cluster").isNotNull()).select(*summing.columns.names)


def _are_flagged(rows: Rows) -> NDArray[Any]:
    return rows.numbers[_IS_EVENT]


def _packed(batches: Iterable[Any], packing: Packing) -> Iterator[Any]:
    for table in chunks(batches):
        yield pack(table, packing)


def _summed(batches: Iterable[Any], summing: Summing) -> Iterator[Any]:
    unpacked = Unpacked()
    for batch in batches:
        unpacked.add(batch)
    yield from sums_of(unpacked.rows(), unpacked.counted, summing)


def sums_of(portions: Iterable[Rows], counted: Counted, summing: Summing) -> Iterator[Any]:
    """Yield batches of `summing.result`; the last one has what was counted meanwhile."""
    schema = to_arrow_schema(summing.result)
    for rows in portions:
        columns = summing.sums(rows)
        nothing = [pa.nulls(len(columns[0]), field.type) for field in list(schema)[len(columns) :]]
        cast = [column.cast(field.type) for column, field in zip(columns, schema, strict=False)]
        yield pa.record_batch([*cast, *nothing], schema=schema)
    yield pa.RecordBatch.from_pylist([dict(counted.values)], schema=schema)
