"""Invoices: the lines of each tenant's amount. The lines of a tenant add up to its amount to the cent.

Each line's exact amount is rounded down to the cent, and the missing cents go to the lines with the largest
remainders.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from pipeline.inputs.prices import Prices
from pipeline.schema import INVOICES, MONEY, names
from pipeline.transforms.chargeback import cents, tier_costs

_TENANT: Final = ("cluster", "user", "client_id")


def invoices(charges: DataFrame, owners: DataFrame, prices: Prices) -> DataFrame:
    """Turn `schema.CHARGEBACK` into `schema.INVOICES`: a line for each price of the price file, and for each
    further tier that the tenant has reached.

    `owners`: the `cluster, user, client_id, name, cost_center` of known tenants.
    """
    lines = F.array(
        *[
            F.struct(
                F.lit(place).alias("line"),
                F.lit(cost.item).alias("item"),
                F.lit(cost.unit).alias("unit"),
                cost.quantity.alias("quantity"),
                F.lit(cost.price).cast(DecimalType(14, 6)).alias("price"),
                cost.amount.alias("exact"),
            )
            for place, cost in enumerate(tier_costs(prices), 1)
        ]
    )
    first = [place for place, cost in enumerate(tier_costs(prices), 1) if cost.is_first]
    billed = charges.select(
        *_TENANT, "currency", cents("amount").alias("whole"), F.explode(lines).alias("of")
    )
    billed = billed.select(*_TENANT, "currency", "whole", "of.*")
    billed = billed.where(F.col("line").isin(first) | (F.col("quantity") > 0))
    cut = billed.withColumn("cut", F.floor(F.col("exact") * 100).cast("bigint"))
    of_tenant = Window.partitionBy(*_TENANT)
    remainder = F.col("exact") * 100 - F.col("cut")
    ranked = cut.withColumns(
        {
            "lacking": F.col("whole") - F.sum("cut").over(of_tenant),
            "place": F.row_number().over(of_tenant.orderBy(remainder.desc(), "line")),
        }
    )
    whole = F.col("cut") + F.when(F.col("place") <= F.col("lacking"), 1).otherwise(0)
    amount = (whole.cast(DecimalType(20, 0)) / F.lit(100)).cast(MONEY)
    found = ranked.withColumn("amount", amount).join(F.broadcast(owners), [*_TENANT], "left")
    return found.select(*names(INVOICES))
