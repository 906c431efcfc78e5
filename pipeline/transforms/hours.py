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
from pipeline.transforms.arrays.rows import Rows, constant, is_constant
from pipeline.transforms.arrays.summing import Summing, summed, table_of
from pipeline.transforms.duplicates import CONTRADICTED, EVENT_HOUR, HOURLY
from pipeline.transforms.runs import Ints, Reals, begins_of, percentile, totals
from pipeline.transforms.totals import LARGEST

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
    lengths = _longest(rows.numbers[_LENGTH], found.rows, begins)
    of_intervals = {name: _totals(rows.numbers[name], found.rows, begins) for name in COUNTS}
    hour_begins = begins_of(group)
    columns: list[NDArray[Any]] = [totals(of_intervals[name], hour_begins) for name in COUNTS]
    columns += [np.maximum.reduceat(of_intervals[way] * 1000.0 / lengths, hour_begins) for way in WAYS]
    rates = [_rates_in_order(of_intervals[way], lengths, hour_begins) for way in WAYS]
    columns += [percentile(each, hour_begins, percent) for percent in PERCENTS for each in rates]
    first = begins[hour_begins]
    columns.append(np.logical_or.reduceat(found.contradicted, first))
    return [*rows.values(_KEYS, found.rows[first]), *map(pa.array, columns)]


def _totals(column: NDArray[Any], rows: Ints, begins: Ints) -> Ints:
    """The sum of each run of these rows."""
    if is_constant(column) and column[0] == 0:
        return np.zeros(len(begins), np.int64)
    return totals(column[rows], begins)


def _longest(column: NDArray[Any], rows: Ints, begins: Ints) -> Ints:
    """The longest interval of each run of these rows."""
    if is_constant(column):
        return constant(int(column[0]), len(begins))
    return np.maximum.reduceat(column[rows].astype(np.int64), begins)


def _rates_in_order(counts: Ints, lengths: Ints, begins: Ints) -> Reals:
    """The rates of each hour, lowest first. `begins`: the first interval of each hour."""
    hour = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(counts)))
    if is_constant(lengths):
        # A higher rate is that of more bytes.
        high = int(counts.max())
        if len(begins) * (high + 1) <= LARGEST:
            both = hour * (high + 1)
            both += counts
            both.sort()
            return (both - hour * (high + 1)) * 1000.0 / lengths
    rates: Reals = counts * 1000.0 / lengths
    return rates[np.lexsort((rates, hour))]


SUMS: Final = {
    HOUR: Summing(_columns(), _by_hour, (_LENGTH, *COUNTS)),
    DAY: Summing(_columns(), _by_day, (_LENGTH, *COUNTS), period_ms=HOURS_PER_DAY * HOUR_MS),
}
"""How hours() is computed."""
