"""Rounds exact amounts to cents so that their sum is right, by the method of the largest remainder.

Each amount is rounded down to the cent, and the missing cents go to the rows with the largest remainders.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from pipeline.schema import MONEY

_PER_UNIT: Final = 100
"""Cents of a unit of the currency."""
_DOWN: Final = "rounded_down"
_MISSING: Final = "missing_cents"
_PLACE: Final = "place_by_remainder"


def with_amount(
    rows: DataFrame, group: Sequence[str], then_by: Sequence[str], total: Column | None = None
) -> DataFrame:
    """Add `amount`, a MONEY, which is `exact` rounded up or down to the cent. The amounts of each group of
    rows add up to `total`, or else to the rounded sum of `exact`.

    `total`: an amount in whole cents that is the same in all rows of a group, and differs from the sum of
    `exact` by less than a cent. `then_by`: the order of rows with equal remainders.
    """
    whole = Window.partitionBy(*group)
    exact = F.col("exact") * _PER_UNIT
    cents = F.round(F.sum("exact").over(whole) * _PER_UNIT) if total is None else total * _PER_UNIT
    down = rows.withColumn(_DOWN, F.floor(exact).cast("bigint"))
    by_remainder = whole.orderBy((exact - F.col(_DOWN)).desc(), *then_by)
    ranked = down.withColumns(
        {
            _MISSING: cents.cast("bigint") - F.sum(_DOWN).over(whole),
            _PLACE: F.row_number().over(by_remainder),
        }
    )
    rounded = F.col(_DOWN) + F.when(F.col(_PLACE) <= F.col(_MISSING), 1).otherwise(0)
    amount = (rounded.cast(DecimalType(20, 0)) / F.lit(_PER_UNIT)).cast(MONEY)
    return ranked.withColumn("amount", amount).drop(_DOWN, _MISSING, _PLACE)
