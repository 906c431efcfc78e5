"""What differs between the quotas that are and those that should be, and the alterations that settle it."""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from proxy.cli.quotas.entity import Entity, Place, Quotas, show_entity, sort_key
from proxy.cli.quotas.number import show_number


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """One quota of one entity; None where there is no such quota before or after."""

    entity: Entity
    key: str
    before: float | None
    after: float | None

    def __str__(self) -> str:
        """As `diff` shows it: `~ user alice: producer_byte_rate 1000 -> 2000`."""
        what = f"{show_entity(self.entity)}: {self.key}"
        if self.before is None and self.after is not None:
            return f"+ {what} {show_number(self.after)}"
        if self.before is not None and self.after is None:
            return f"- {what} {show_number(self.before)}"
        assert self.before is not None
        assert self.after is not None
        return f"~ {what} {show_number(self.before)} -> {show_number(self.after)}"


@dataclass(frozen=True, slots=True)
class EntityAlteration:
    """An entry of AlterClientQuotas: the entity's keys to set, and with None those to remove."""

    entity: Entity
    values: dict[str, float | None]


def compare(
    have: Quotas, want: Quotas, *, prune: bool, apart: Container[Place] = frozenset()
) -> list[QuotaChange]:
    """What turns `have` into `want`, in a stable order; nothing is taken away unless `prune`.

    Quotas that are `apart` stay as they are.
    """
    changes: list[QuotaChange] = []
    entities = {**want, **have} if prune else want
    for entity in sorted(entities, key=sort_key):
        old, new = have.get(entity, {}), want.get(entity, {})
        keys = {**old, **new} if prune else new
        changes += [
            QuotaChange(entity, key, old.get(key), new.get(key))
            for key in sorted(keys)
            if old.get(key) != new.get(key) and (entity, key) not in apart
        ]
    return changes


def alterations(changes: Iterable[QuotaChange]) -> list[EntityAlteration]:
    """The changes by entity, each entity once: a broker rejects the second of a request (error 42)."""
    by_entity: dict[Entity, dict[str, float | None]] = {}
    for change in changes:
        by_entity.setdefault(change.entity, {})[change.key] = change.after
    return [EntityAlteration(entity, values) for entity, values in by_entity.items()]


def summary(changes: Iterable[QuotaChange]) -> str:
    """How many quotas are new, other and gone: `2 to add, 1 to change, 0 to remove`."""
    signs = [str(change)[0] for change in changes]
    return f"{signs.count('+')} to add, {signs.count('~')} to change, {signs.count('-')} to remove"
