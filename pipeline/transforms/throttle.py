"""Throttle: which tenants were throttled or rejected, by hour."""

from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from pipeline.schema import THROTTLE, names
from pipeline.transforms.arrays.first_events import first_events
from pipeline.transforms.arrays.rows import Rows
from pipeline.transforms.arrays.summing import Summing, summed, table_of
from pipeline.transforms.duplicates import CONTRADICTED, EVENT_HOUR, HOURLY, start_of
from pipeline.transforms.runs import begins_of, combined, totals
from pipeline.transforms.totals import total

BOUND: Final = ("throttled_requests", "throttle_ms", "rejected_requests", "rejected_bytes")
"""The counts of what quotas did."""
_QUOTA: Final = "quota"
_KEYS: Final = (EVENT_HOUR, "cluster", "user", "client_id", _QUOTA)


def bound(events: DataFrame) -> DataFrame:
    """Return the events in which a quota throttled or rejected something, as _are_bound() does in arrays."""
    return events.where(reduce(Column.__or__, [F.col(name) > 0 for name in BOUND]))


def throttle(events: DataFrame) -> DataFrame:
    """Turn events into `schema.THROTTLE`: only hours in which a quota throttled or rejected. Of the events in
    which one did, each counts once: the first one.
    """
    return added(table_of(summed(events, SUMS), SUMS))


def added(sums: DataFrame) -> DataFrame:
    """Turn the sums of each part of the events into `schema.THROTTLE`."""
    together = sums.groupBy(*_KEYS).agg(*[total(name).alias(name) for name in BOUND])
    return together.withColumn("hour", start_of(F.col(EVENT_HOUR))).select(*names(THROTTLE))


def _are_bound(rows: Rows) -> NDArray[np.bool_]:
    """Whether a quota throttled or rejected something in each event."""
    found: NDArray[np.bool_] = np.logical_or.reduce([rows[name] > 0 for name in BOUND])
    return found


def _sums(rows: Rows) -> list[Any]:
    found = first_events(rows, HOURLY)
    keys = combined([rows[name] for name in _KEYS])[found.rows]
    in_order = np.argsort(keys)
    counted, begins = found.rows[in_order], begins_of(keys[in_order])
    sums = [totals(rows[name][counted], begins) for name in BOUND]
    contradicted = np.logical_or.reduceat(found.contradicted[in_order], begins)
    return [*rows.values(_KEYS, counted[begins]), *map(pa.array, (*sums, contradicted))]


SUMS: Final = Summing(
    StructType(
        [
            StructField(EVENT_HOUR, LongType()),
            *[StructField(name, StringType()) for name in _KEYS[1:]],
            *[StructField(name, LongType()) for name in BOUND],
            StructField(CONTRADICTED, BooleanType()),
        ]
    ),
    _sums,
    (*BOUND, _QUOTA),
    are_wanted=_are_bound,
    positive=BOUND,
    by_tenant=True,
)
"""How the sums by hour are computed: one row for each key in each part of the events."""
