"""Totals that cannot overflow.

An event may have counts of 2^53, and Spark ends a job if a sum needs more than 64 bits.
"""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

LARGEST: Final = (1 << 63) - 1
"""The largest number of Spark's bigint."""


def total(count: str | Column) -> Column:
    """Sum counts that are not negative and not null; a larger sum is LARGEST."""
    return F.coalesce(F.try_sum(count), F.lit(LARGEST))
