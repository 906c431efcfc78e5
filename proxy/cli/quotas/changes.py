"""The difference between existing and wanted quotas, and the alterations that remove it."""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from proxy.cli.quotas.entity import Entity, Place, Quotas, show_entity, sort_key
from proxy.cli.quotas.values import show_number


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """A change of one quota of one entity. None: the entity does not have the quota before or after."""

    entity: Entity
    key: str
    before: float | None
    after: float | None

    def __str__(self) -> str:
        """The line that `diff` shows: `~ user alice: producer_byte_rate 1000 -> 2000`."""
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
    """An entry of AlterClientQuotas: the keys to set; None removes a key."""

    entity: Entity
    values: dict[str, float | None]


def compare(
    have: Quotas, want: Quotas, *, prune: bool, ignored: Container[Place] = frozenset()
) -> list[QuotaChange]:
    """The changes that turn `have` into `want`, in a stable order. Quotas are removed only with `prune`.

    `ignored` quotas are not changed.
    """
    changes: list[QuotaChange] = []
    entities = {**want, **have} if prune else want
    for entity in sorted(entities, key=sort_key):
        old, new = have.get(entity, {}), want.get(entity, {})
        keys = {**old, **new} if prune else new
        changes += [
            QuotaChange(entity, key, old.get(key), new.get(key))
            for key in sorted(keys)
            if old.get(key) != new.get(key) and (entity, key) not in ignored
        ]
    return changes


def alterations(changes: Iterable[QuotaChange]) -> list[EntityAlteration]:
    """The changes by entity. Each entity occurs once: a broker rejects a second entry for it (error 42)."""
    by_entity: dict[Entity, dict[str, float | None]] = {}
    for change in changes:
        by_entity.setdefault(change.entity, {})[change.key] = change.after
    return [EntityAlteration(entity, values) for entity, values in by_entity.items()]


def summary(changes: Iterable[QuotaChange]) -> str:
    """The number of changes of each sort: `2 to add, 1 to change, 0 to remove`."""
    signs = [str(change)[0] for change in changes]
    return f"{signs.count('+')} to add, {signs.count('~')} to change, {signs.count('-')} to remove"
