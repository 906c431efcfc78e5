"""Table: one quota's value by entity, and what a change has made different."""

from collections.abc import Mapping
from typing import Final, final

from proxy.quota.identity import DEFAULT, Names

_FEW: Final = 1000


@final
class LimitChange:
    """What differs between a table and the one that it was made from."""

    __slots__ = ("entities", "moved")

    def __init__(self, entities: list[Names], moved: set[Names]) -> None:
        self.entities: Final = entities
        """Those whose value was set or removed; each stands for itself alone, and is neither a default entity
        nor a network.
        """
        self.moved: Final = moved
        """Those of them that had no value, or have none now."""


UNCHANGED: Final = LimitChange([], set())


@final
class Table:
    """Immutable. A table knows what makes it differ from the one that it was made from, and holds on to
    nothing of that one.
    """

    __slots__ = ("_change", "_made_from", "_mark", "values")

    def __init__(self, values: dict[Names, float]) -> None:
        self.values: Final = values
        self._mark: Final = object()
        self._made_from: object | None = None
        self._change: LimitChange | None = None

    def with_changes(self, changes: Mapping[Names, float | None]) -> "Table":
        """This table but for some values; None removes one."""
        values = dict(self.values)
        moved: set[Names] = set()
        alone = len(changes) <= _FEW
        for entity, value in changes.items():
            alone = alone and not _for_several(entity)
            if alone and (value is not None) != (entity in values):
                moved.add(entity)
            if value is None:
                values.pop(entity, None)
            else:
                values[entity] = value
        table = Table(values)
        if alone:
            table._made_from = self._mark
            table._change = LimitChange(list(changes), moved)
        return table

    def change_since(self, other: "Table") -> LimitChange | None:
        """What is different from another table; None: it may be anything."""
        if other is self:
            return UNCHANGED
        return self._change if other._mark is self._made_from else None


def _for_several(entity: Names) -> bool:
    """Whether the entity's quota holds for several buckets."""
    ip = entity[2]
    return entity[0] == DEFAULT or entity[1] == DEFAULT or ip == DEFAULT or (ip is not None and "/" in ip)


EMPTY: Final = Table({})
