"""Movers: the tenants whose use changed the most since the period before."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from pipeline.report.figures import Key, Use

MOST: Final = 10
"""Tenants of the list."""
_NOTHING: Final = Use()
_FREE: Final = Decimal("0.00")


@dataclass(frozen=True, slots=True)
class Mover:
    """A tenant, and its use in the period before and in this one."""

    tenant: Key
    before: Use
    now: Use

    @property
    def amounts(self) -> tuple[Decimal, Decimal] | None:
        """The amount before and now; None if there are no prices."""
        if self.before.amount is None and self.now.amount is None:
            return None
        return self.before.amount or _FREE, self.now.amount or _FREE


def movers(now: Mapping[Key, Use], before: Mapping[Key, Use], most: int = MOST) -> list[Mover]:
    """Return the tenants with the largest changes, up or down: of their amount, or of their bytes if there
    are no prices or the amounts are equal.
    """
    found = [
        Mover(tenant, before.get(tenant, _NOTHING), now.get(tenant, _NOTHING)) for tenant in {**now, **before}
    ]
    changed = [mover for mover in found if any(_change(mover))]
    return sorted(changed, key=lambda mover: (*[-size for size in _change(mover)], mover.tenant))[:most]


def _change(mover: Mover) -> tuple[Decimal, int]:
    amounts = mover.amounts
    money = Decimal(0) if amounts is None else abs(amounts[1] - amounts[0])
    return money, abs(mover.now.size - mover.before.size)
