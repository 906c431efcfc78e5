"""Sums and rates of each hour, or day, of each tenant on each partition at each broker."""

from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, DoubleType, LongType, StructField, StructType

from pipeline.schema import COUNTS, EVENT
from pipeline.transforms.arrays.first_events import first_events
from pipeline.transforms.arrays.parcels import HOUR_MS
from pipeline.transforms.arrays.rows import Rows
from pipeline.transforms.arrays.summing import Summing, summed, table_of
from pipeline.transforms.duplicates import CONTRADICTED, EVENT_HOUR, HOURLY
from pipeline.transforms.runs import begins_of, percentile, totals

HOUR: Final = "hour"
DAY: Final = "day"
HOURS_PER_DAY: Final = 24
PERCENTS: Final = (95, 99)
WAYS: Final = ("bytes_in", "bytes_out")
_KEYS: Final = (*HOURLY, "broker")
"""The columns by which the sums group."""
_LENGTH: Final = "interval_ms"


def _columns() -> StructType:
    keys = {field.name: field.dataType for field in EVENT.fields} | {EVENT_HOUR: LongType()}
    rates = [f"max_{way}_rate" for way in WAYS]
    rates += [f"p{percent}_{way}_rate" for percent in PERCENTS for way in WAYS]
    return StructType(
        [
            *[StructField(name, keys[name]) for name in _KEYS],
            *[StructField(name, LongType()) for name in COUNTS],
            *[StructField(name, DoubleType()) for name in rates],
            StructField(CONTRADICTED, BooleanType()),
        ]
    )


def hours(events: DataFrame, by: str = HOUR) -> DataFrame:
    """Return HOURLY and `broker`, with the sums of COUNTS, the highest rates, the percentiles of rates and
    CONTRADICTED. Each event counts once: the first one.

    A rate is that of an interval, with all APIs and proxies. With DAY, EVENT_HOUR is the first one of a day.
    """
    return table_of(summed(events, SUMS[by]), SUMS[by])


def _by_hour(rows: Rows) -> list[Any]:
    return _sums(rows, 1)


def _by_day(rows: Rows) -> list[Any]:
    return _sums(rows, HOURS_PER_DAY)


def _sums(rows: Rows, length: int) -> list[Any]:
    """Return the columns for periods of so many hours."""
    hour = rows[EVENT_HOUR]
    rows = Rows({**rows.numbers, EVENT_HOUR: hour - hour % length}, rows.texts)
    found = first_events(rows, _KEYS)
    begins = begins_of(found.moments)
    group = found.groups[begins]
    lengths = np.maximum.reduceat(rows[_LENGTH][found.rows], begins)
    of_intervals = {name: totals(rows[name][found.rows], begins) for name in COUNTS}
    hour_begins = begins_of(group)
    columns: list[NDArray[Any]] = [totals(of_intervals[name], hour_begins) for name in COUNTS]
    rates = {way: of_intervals[way] * 1000.0 / lengths for way in WAYS}
    columns += [np.maximum.reduceat(rates[way], hour_begins) for way in WAYS]
    in_order = {way: rates[way][np.lexsort((rates[way], group))] for way in WAYS}
    for percent in PERCENTS:
        columns += [percentile(in_order[way], hour_begins, percent) for way in WAYS]
    first = begins[hour_begins]
    columns.append(np.logical_or.reduceat(found.contradicted, first))
    return [*rows.values(_KEYS, found.rows[first]), *map(pa.array, columns)]


SUMS: Final = {
    HOUR: Summing(_columns(), _by_hour, (_LENGTH, *COUNTS)),
    DAY: Summing(_columns(), _by_day, (_LENGTH, *COUNTS), period_ms=HOURS_PER_DAY * HOUR_MS),
}
"""How hours() is computed."""
