"""Invoices: the lines of each tenant's amount. The lines of a tenant add up to its amount to the cent."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from pipeline.inputs.prices import Prices
from pipeline.schema import INVOICES, names
from pipeline.transforms.chargeback import tier_costs
from pipeline.transforms.largest_remainder import with_amount

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
        *_TENANT, "currency", F.col("amount").alias("charged"), F.explode(lines).alias("of")
    )
    billed = billed.select(*_TENANT, "currency", "charged", "of.*")
    billed = billed.where(F.col("line").isin(first) | (F.col("quantity") > 0))
    found = with_amount(billed, _TENANT, ["line"], total=F.col("charged"))
    found = found.join(F.broadcast(owners), [*_TENANT], "left")
    return found.select(*names(INVOICES))
