"""Prices of usage, read from a YAML file."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, Struct

from pipeline.errors import InputError
from pipeline.inputs.documents import convert, read_yaml

MOST: Final = Decimal(10_000_000)
"""The highest price."""
DECIMALS: Final = 6
"""The most decimals of a price."""
MOST_UP_TO: Final = Decimal(10**12)
"""Larger than every quantity of a tenant, and within the decimal numbers that Spark computes with."""


class Tier(Struct, forbid_unknown_fields=True, frozen=True):
    """A price for the quantity from the previous tier's `up_to` to its own; the last tier has no `up_to`."""

    price: Decimal
    up_to: Decimal | None = None


Price = Decimal | list[Tier]


class Prices(Struct, forbid_unknown_fields=True, frozen=True):
    """Prices in one currency. Tiers apply to each tenant's total over the period of the bill."""

    currency: Annotated[str, Meta(min_length=1)]
    per_gib_in: Price = Decimal(0)
    per_gib_out: Price = Decimal(0)
    per_million_requests: Price = Decimal(0)
    per_partition_hour: Price = Decimal(0)


def read_prices(path: Path) -> Prices:
    """Read the prices. Raises InputError if the file is invalid."""
    prices = convert(read_yaml(path), Prices, path)
    for name in ("per_gib_in", "per_gib_out", "per_million_requests", "per_partition_hour"):
        try:
            _check(tiers(getattr(prices, name)))
        except ValueError as error:
            raise InputError(f"{path}: {name}: {error}") from error
    return prices


def tiers(price: Price) -> list[Tier]:
    """Return the tiers of a price; a plain price is a single tier."""
    return [Tier(price)] if isinstance(price, Decimal) else price


def _check(found: list[Tier]) -> None:
    """Raise ValueError for tiers that are not a price. `up_to` must ascend; only the last tier has none."""
    if not found:
        raise ValueError("expected a price, or a list of tiers of which only the last has no up_to")
    below = Decimal(0)
    for place, tier in enumerate(found):
        if not tier.price.is_finite() or not Decimal(0) <= tier.price <= MOST:
            raise ValueError(f"{tier.price} is not a price; expected a number from 0 to {MOST}")
        exponent = tier.price.normalize().as_tuple().exponent
        if isinstance(exponent, int) and exponent < -DECIMALS:
            raise ValueError(f"{tier.price} has more than {DECIMALS} decimals; round it")
        last = place == len(found) - 1
        if last != (tier.up_to is None):
            raise ValueError("every tier but the last must have up_to, and the last must not have it")
        if tier.up_to is not None:
            if not tier.up_to.is_finite() or tier.up_to <= below:
                raise ValueError(
                    f"up_to is {tier.up_to}, but this tier begins at {below}; use a larger up_to"
                )
            if tier.up_to > MOST_UP_TO:
                raise ValueError(f"up_to is {tier.up_to}; expected at most {MOST_UP_TO}")
            below = tier.up_to
