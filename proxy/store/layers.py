"""Layers: what the file says and what the tools have set, and the quotas that come out of the two.

An entity is a QuotaEntity with numbers, or a ConfigResource with texts. Of one quota of one entity, the first
of these holds:

    1  the tools' temporary value, until it ends
    2  what the tools have set, or that they have removed it
    3  the file's temporary value, until it ends
    4  the file's value

Time is ms since the epoch and comes as an argument. A change costs the same however many entities there are.
"""

import heapq
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from proxy.quota.identity import QuotaEntity
from proxy.quota.limits.resources import ConfigResource

SLICE: Final = 500
"""So many entities are to be renewed in one go."""

Entity = TypeVar("Entity", bound=Hashable)
Value = TypeVar("Value")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Temporary(Generic[Value]):
    """A value until a time, in ms since the epoch; None: no limit until then."""

    value: Value | None
    until_ms: int


@dataclass(slots=True)
class Layer(Generic[Entity, Value]):
    """What one source says."""

    lasting: dict[Entity, dict[str, Value | None]] = field(default_factory=dict)
    """None: removed, so that no layer below counts."""
    temporary: dict[Entity, dict[str, Temporary[Value]]] = field(default_factory=dict)

    def set_lasting(self, entity: Entity, name: str, value: Value | None) -> None:
        self.lasting.setdefault(entity, {})[name] = value

    def set_temporary(self, entity: Entity, name: str, temporary: Temporary[Value]) -> None:
        self.temporary.setdefault(entity, {})[name] = temporary

    def drop_lasting(self, entity: Entity, name: str) -> None:
        _drop(self.lasting, entity, name)

    def drop_temporary(self, entity: Entity, name: str) -> None:
        _drop(self.temporary, entity, name)

    def places(self) -> Iterator[tuple[Entity, str]]:
        """Every entity and quota of which this layer says anything."""
        for quotas in (self.lasting, self.temporary):
            for entity, values in quotas.items():
                for name in values:
                    yield entity, name

    def entities(self) -> list[Entity]:
        """Every entity of which this layer says anything; some may be there twice."""
        return [*self.lasting, *self.temporary]

    def differing(
        self, other: "Layer[Entity, Value]", entities: Iterable[Entity]
    ) -> Iterator[tuple[Entity, str]]:
        """The quotas of these entities of which the two may say different things."""
        for entity in entities:
            yield from _differing(entity, self.lasting, other.lasting)
            yield from _differing(entity, self.temporary, other.temporary)


class Layers(Generic[Entity, Value]):
    """The file and the tools, folded."""

    def __init__(self) -> None:
        self.effective: Final[dict[Entity, dict[str, Value]]] = {}
        """What is in force; not to be changed by others."""
        self.file: Layer[Entity, Value] = Layer()
        self.tools: Layer[Entity, Value] = Layer()
        self._ends: list[tuple[int, int, Entity, str]] = []
        """When temporary values end, as a heap; the second number settles ties. Entries may be void."""
        self._pushed = 0

    def use(self, file: Layer[Entity, Value], tools: Layer[Entity, Value], now_ms: int) -> None:
        """Take whole layers in place of those that are there."""
        self.file, self.tools = file, tools
        self.effective.clear()
        self._ends.clear()
        for layer in (file, tools):
            for entity, name in layer.places():
                self.refresh(entity, name, now_ms)
            self._await_ends(layer)

    def use_file(self, file: Layer[Entity, Value]) -> tuple[Layer[Entity, Value], list[Entity]]:
        """Take another file; gives back the one before, and the entities to give to renew(), SLICE at a time.

        Until then their former values hold. Those that have left the file come last, so that nobody is
        without a quota meanwhile.
        """
        before, self.file = self.file, file
        self._await_ends(file)
        return before, list(dict.fromkeys(file.entities() + before.entities()))

    def renew(
        self, before: Layer[Entity, Value], entities: Iterable[Entity], now_ms: int
    ) -> list[tuple[Entity, str]]:
        """Have the file hold for these entities; the quotas of which another value holds now.

        Those of which the two files say the same cost little more than a look.
        """
        places = before.differing(self.file, entities)
        return [place for place in places if self.refresh(*place, now_ms)]

    def _await_ends(self, layer: Layer[Entity, Value]) -> None:
        for entity, values in layer.temporary.items():
            for name, temporary in values.items():
                self.ends(entity, name, temporary.until_ms)

    def ends(self, entity: Entity, name: str, until_ms: int) -> None:
        """Have expire() look at a temporary value when it ends."""
        self._pushed += 1
        heapq.heappush(self._ends, (until_ms, self._pushed, entity, name))

    def refresh(self, entity: Entity, name: str, now_ms: int) -> bool:
        """Fold one quota of one entity anew, as a layer may have changed; whether what is in force has."""
        value = self._fold(entity, name, now_ms)
        values = self.effective.get(entity)
        if value == (None if values is None else values.get(name)):
            return False
        if value is not None:
            self.effective.setdefault(entity, {})[name] = value
        else:
            _drop(self.effective, entity, name)
        return True

    def next_end(self) -> int | None:
        """When expire() is due next."""
        return self._ends[0][0] if self._ends else None

    def expire(self, now_ms: int) -> list[tuple[Entity, str]]:
        """End the temporary values whose time is over; the quotas of which another value holds now."""
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
        """The value that holds when nothing temporary does."""
        tools = self.tools.lasting.get(entity, {})
        return tools[name] if name in tools else self.file.lasting.get(entity, {}).get(name)

    def in_file(self, entity: Entity, name: str) -> bool:
        """Whether the file gives this quota to this entity, for good or for a time."""
        return any(name in quotas.get(entity, {}) for quotas in (self.file.lasting, self.file.temporary))

    def _fold(self, entity: Entity, name: str, now_ms: int) -> Value | None:
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
