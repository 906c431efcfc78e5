"""Layers: the quotas of the file and those that tools set, merged into the effective quotas.

An entity is a QuotaEntity with numbers, or a ConfigResource with texts. The effective value of a quota of an
entity is the first of these:

    1  the tools' temporary value, until it expires
    2  the tools' value or removal
    3  the file's temporary value, until it expires
    4  the file's value

Times are in ms since the epoch, and are arguments. The cost of a change does not depend on the number of
entities.
"""

import heapq
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, cast

from proxy.quota.identity import QuotaEntity
from proxy.quota.limits.resources import ConfigResource

SLICE: Final = 500
"""Maximum number of entities per renew(): a few ms of work, after which the event loop can run."""

Entity = TypeVar("Entity", bound=Hashable)
Value = TypeVar("Value")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Temporary(Generic[Value]):
    """A value that expires at a time in ms since the epoch. None: no limit until then."""

    value: Value | None
    until_ms: int


FILE: Final = "file"
TOOLS: Final = "tools"
"""The sources of values."""


@dataclass(frozen=True, slots=True)
class Sourced(Generic[Value]):
    """A value of one layer, with the source of the layer: FILE or TOOLS."""

    source: str
    value: Value | None
    """None: the layer has no limit, whatever lower layers have."""
    until_ms: int | None = None
    """Expiry of a temporary value."""


@dataclass(slots=True)
class Layer(Generic[Entity, Value]):
    """The values of one source: the file, or the tools."""

    lasting: dict[Entity, dict[str, Value | None]] = field(default_factory=dict)
    """None: removed, which hides the values of lower layers."""
    temporary: dict[Entity, dict[str, Temporary[Value]]] = field(default_factory=dict)

    def set_lasting(self, entity: Entity, name: str, value: Value | None) -> None:
        self.lasting.setdefault(entity, {})[name] = value

    def set_temporary(self, entity: Entity, name: str, temporary: Temporary[Value]) -> None:
        self.temporary.setdefault(entity, {})[name] = temporary

    def drop_lasting(self, entity: Entity, name: str) -> None:
        _drop(self.lasting, entity, name)

    def drop_temporary(self, entity: Entity, name: str) -> None:
        _drop(self.temporary, entity, name)

    def entities(self) -> list[Entity]:
        """Every entity with a value in this layer; some may occur twice."""
        return [*self.lasting, *self.temporary]

    def differing(
        self, other: "Layer[Entity, Value]", entities: Iterable[Entity]
    ) -> Iterator[tuple[Entity, str]]:
        """The quotas of these entities whose values may differ between the two layers."""
        for entity in entities:
            yield from _differing(entity, self.lasting, other.lasting)
            yield from _differing(entity, self.temporary, other.temporary)


class Layers(Generic[Entity, Value]):
    """The layers of the file and of the tools, merged."""

    def __init__(self) -> None:
        self.effective: Final[dict[Entity, dict[str, Value]]] = {}
        """The effective values; read-only for callers."""
        self.file: Layer[Entity, Value] = Layer()
        self.tools: Layer[Entity, Value] = Layer()
        self._ends: list[tuple[int, int, Entity, str]] = []
        """A heap of (expiry, tie breaker, entity, quota). Entries whose value was replaced stay in it."""
        self._pushed = 0

    def use(self, file: Layer[Entity, Value], tools: Layer[Entity, Value], now_ms: int) -> None:
        """Replace both layers."""
        self.file, self.tools = file, tools
        self.effective.clear()
        self._ends.clear()
        others = (file.temporary, tools.lasting, tools.temporary)
        for entity, values in file.lasting.items():
            if any(entity in quotas for quotas in others):
                continue
            # For nearly all entities of a large file, there is nothing to merge: they share the dict.
            found = cast("dict[str, Value]", values)
            if None in values.values():
                found = {name: value for name, value in values.items() if value is not None}
            if found:
                self.effective[entity] = found
        for quotas in others:
            for entity in quotas:
                for name in self.names(entity):
                    self.refresh(entity, name, now_ms)
        for layer in (file, tools):
            self._await_ends(layer)

    def use_file(self, file: Layer[Entity, Value]) -> tuple[Layer[Entity, Value], list[Entity]]:
        """Replace the layer of the file. Returns the previous one, and the entities to pass to renew(), SLICE
        at a time.

        Until then their previous values are effective. Entities that left the file come last, so that no
        client is without a quota in between.
        """
        before, self.file = self.file, file
        self._await_ends(file)
        return before, list(dict.fromkeys(file.entities() + before.entities()))

    def renew(
        self, before: Layer[Entity, Value], entities: Iterable[Entity], now_ms: int
    ) -> list[tuple[Entity, str]]:
        """Apply the new file to these entities. Returns the quotas whose effective value changed.

        Entities with equal values in both files cost one comparison.
        """
        places = before.differing(self.file, entities)
        return [place for place in places if self.refresh(*place, now_ms)]

    def _await_ends(self, layer: Layer[Entity, Value]) -> None:
        for entity, values in layer.temporary.items():
            for name, temporary in values.items():
                self.ends(entity, name, temporary.until_ms)

    def ends(self, entity: Entity, name: str, until_ms: int) -> None:
        """Have expire() check a temporary value at its expiry."""
        self._pushed += 1
        heapq.heappush(self._ends, (until_ms, self._pushed, entity, name))

    def refresh(self, entity: Entity, name: str, now_ms: int) -> bool:
        """Merge one quota of one entity again. Returns whether its effective value changed."""
        value = self._merge(entity, name, now_ms)
        values = self.effective.get(entity, {})
        if value == values.get(name):
            return False
        values = dict(values)  # it may be that of the file
        if value is not None:
            values[name] = value
        else:
            del values[name]
        if values:
            self.effective[entity] = values
        else:
            del self.effective[entity]
        return True

    def next_end(self) -> int | None:
        """When expire() is due next; None: never."""
        return self._ends[0][0] if self._ends else None

    def expire(self, now_ms: int) -> list[tuple[Entity, str]]:
        """Remove expired values. Returns the quotas whose effective value changed."""
        changed = []
        while self._ends and self._ends[0][0] <= now_ms:
            _, _, entity, name = heapq.heappop(self._ends)
            for layer in (self.file, self.tools):
                temporary = layer.temporary.get(entity, {}).get(name)
                if temporary is not None and temporary.until_ms <= now_ms:
                    layer.drop_temporary(entity, name)
            if self.refresh(entity, name, now_ms):
                changed.append((entity, name))
        return changed

    def lasting(self, entity: Entity, name: str) -> Value | None:
        """The value without temporary values."""
        tools = self.tools.lasting.get(entity, {})
        return tools[name] if name in tools else self.file.lasting.get(entity, {}).get(name)

    def values(self, entity: Entity, name: str, now_ms: int) -> list[Sourced[Value]]:
        """The values of one quota in all layers, in order of precedence: the first one is in force."""
        found: list[Sourced[Value]] = []
        for source, layer in ((TOOLS, self.tools), (FILE, self.file)):
            temporary = layer.temporary.get(entity, {}).get(name)
            if temporary is not None and temporary.until_ms > now_ms:
                found.append(Sourced(source, temporary.value, temporary.until_ms))
            lasting = layer.lasting.get(entity, {})
            if name in lasting:
                found.append(Sourced(source, lasting[name]))
        return found

    def names(self, entity: Entity) -> list[str]:
        """The quotas with a value in any layer, sorted."""
        layers = (self.file.lasting, self.file.temporary, self.tools.lasting, self.tools.temporary)
        return sorted({name for values in layers for name in values.get(entity, ())})

    def in_file(self, entity: Entity, name: str) -> bool:
        """Whether the file has a lasting or a temporary value for this quota of this entity."""
        return any(name in quotas.get(entity, {}) for quotas in (self.file.lasting, self.file.temporary))

    def _merge(self, entity: Entity, name: str, now_ms: int) -> Value | None:
        # The value of values()[0]; merging the layers of 100,000 quotas creates no objects.
        for layer in (self.tools, self.file):
            temporary = layer.temporary.get(entity, {}).get(name)
            if temporary is not None and temporary.until_ms > now_ms:
                return temporary.value
            lasting = layer.lasting.get(entity, {})
            if name in lasting:
                return lasting[name]
        return None


def _differing(
    entity: Entity, one: dict[Entity, dict[str, T]], other: dict[Entity, dict[str, T]]
) -> Iterator[tuple[Entity, str]]:
    before, values = one.get(entity), other.get(entity)
    if before != values:
        for name in {**(before or {}), **(values or {})}:
            yield entity, name


def _drop(quotas: dict[Entity, dict[str, T]], entity: Entity, name: str) -> None:
    values = quotas.get(entity)
    if values is not None:
        values.pop(name, None)
        if not values:
            del quotas[entity]


Quotas = dict[QuotaEntity, dict[str, float]]
"""Each entity's quotas by their keys."""
ClientLayer = Layer[QuotaEntity, float]
ConfigLayer = Layer[ConfigResource, str]
