"""What each tenant used in a period, for a bill."""

from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from pipeline.transforms.arrays.first_events import first_events
from pipeline.transforms.arrays.rows import NULL, Rows
from pipeline.transforms.arrays.summing import Summing, summed, table_of
from pipeline.transforms.duplicates import CONTRADICTED, EVENT_HOUR
from pipeline.transforms.runs import begins_of, combined, totals
from pipeline.transforms.totals import total

TENANT: Final = ("cluster", "user", "client_id")
_COUNTS: Final = ("bytes_in", "bytes_out", "requests")
_HOURS: Final = "partition_hours"
_PLACE: Final = ("topic", "partition")


def tenants(events: DataFrame) -> DataFrame:
    """Return TENANT, `bytes_in, bytes_out, requests, partition_hours` of each tenant. Each event counts once:
    the first one.
    """
    return added(table_of(summed(events, SUMS), SUMS))


def added(sums: DataFrame) -> DataFrame:
    """Add up the sums of each tenant, of which each part of the events has some."""
    return sums.groupBy(*TENANT).agg(
        *[total(name).alias(name) for name in _COUNTS], F.sum(_HOURS).alias(_HOURS)
    )


def _sums(rows: Rows) -> list[Any]:
    """Return TENANT and its sums over the hours of the rows. A partition that moves to another broker within
    an hour is used for one hour.
    """
    found = first_events(rows, (*TENANT, EVENT_HOUR, *_PLACE))
    hour_begins = begins_of(found.groups)
    first = found.rows[hour_begins]
    of_tenant = begins_of(combined([rows.numbers[name][first] for name in TENANT]))
    is_used = np.logical_and.reduce([rows.numbers[name][first] != NULL for name in _PLACE])
    hours = totals(is_used.astype(np.int64), of_tenant)
    begins = hour_begins[of_tenant]
    sums = [totals(rows.numbers[name][found.rows], begins) for name in _COUNTS]
    contradicted = np.logical_or.reduceat(found.contradicted, begins)
    keys = rows.values(TENANT, found.rows[begins])
    return [*keys, *map(pa.array, (*sums, hours, contradicted))]


SUMS: Final = Summing(
    StructType(
        [
            *[StructField(name, StringType()) for name in TENANT],
            *[StructField(name, LongType()) for name in (*_COUNTS, _HOURS)],
            StructField(CONTRADICTED, BooleanType()),
        ]
    ),
    _sums,
    _COUNTS,
    by_tenant=True,
)
"""How the sums of tenants are computed: one row for each tenant in each part of the events."""
