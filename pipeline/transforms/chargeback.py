"""Chargeback: what each tenant of a cluster pays; the amounts add up to the cluster's bill to the cent.

A tenant's exact amount has more decimals than the currency. The bill of a cluster is its rounded exact sum,
and the amounts of its tenants are rounded so that they add up to it.
"""

from decimal import Decimal
from functools import reduce
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from pipeline.inputs.prices import Prices, tiers
from pipeline.schema import CHARGEBACK, names
from pipeline.transforms.largest_remainder import with_amount
from pipeline.transforms.tenants import tenants

_GIB_PER_BYTE: Final = Decimal(1) / (1 << 30)
_QUANTITY: Final = DecimalType(31, 18)
"""Sums of 64 bits, in millions or in GiB."""
_PRICE: Final = DecimalType(14, 6)
_EXACT: Final = DecimalType(30, 12)


def chargeback(events: DataFrame, prices: Prices) -> DataFrame:
    """Turn events into `schema.CHARGEBACK`. Each event counts once: the first one."""
    return bill(tenants(events), prices)


def bill(uses: DataFrame, prices: Prices) -> DataFrame:
    """Turn the result of tenants() into `schema.CHARGEBACK`."""
    exact = uses.withColumns({"exact": exact_amount(prices), "currency": F.lit(prices.currency)})
    return with_amount(exact, ["cluster"], ["user", "client_id"]).select(*names(CHARGEBACK))


def exact_amount(prices: Prices) -> Column:
    """The amount of a tenant with 12 decimals."""
    return reduce(Column.__add__, [cost.amount for cost in tier_costs(prices)]).cast(_EXACT)


class TierCost(NamedTuple):
    """The usage of a tenant within a tier of a price, and its cost. `item` is the key of the price file;
    `is_first`: whether it is the first tier of its price.
    """

    item: str
    unit: str
    price: Decimal
    quantity: Column
    amount: Column
    is_first: bool


def tier_costs(prices: Prices) -> list[TierCost]:
    """Return the costs of a tenant by price and tier, with 12 decimals; exact_amount() is their sum."""
    quantities = {
        "per_gib_in": ("GiB", "bytes_in", F.lit(_GIB_PER_BYTE).cast(DecimalType(30, 30))),
        "per_gib_out": ("GiB", "bytes_out", F.lit(_GIB_PER_BYTE).cast(DecimalType(30, 30))),
        "per_million_requests": ("million requests", "requests", F.lit(Decimal("0.000001"))),
        "per_partition_hour": ("partition-hours", "partition_hours", F.lit(Decimal(1))),
    }
    found = []
    for item, (unit, count, factor) in quantities.items():
        quantity = (F.col(count).cast(DecimalType(19, 0)) * factor).cast(_QUANTITY)
        below = Decimal(0)
        for place, tier in enumerate(tiers(getattr(prices, item))):
            upper = quantity if tier.up_to is None else F.least(quantity, F.lit(tier.up_to).cast(_QUANTITY))
            start = F.lit(below).cast(_QUANTITY)
            within = F.greatest(upper - start, F.lit(Decimal(0))).cast(_QUANTITY)
            amount = (within * F.lit(tier.price).cast(_PRICE)).cast(_EXACT)
            found.append(TierCost(item, unit, tier.price, within, amount, place == 0))
            below = tier.up_to if tier.up_to is not None else below
    return found
