"""Sources: the file and the log of what the tools have set, as layers, and what a change of them takes."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast

from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits.resources import ConfigResource
from proxy.store.layers import Layer, Layers, Temporary
from proxy.store.records import Place, Setting

Entity = TypeVar("Entity", bound=Hashable)
Value = TypeVar("Value")
Write = Callable[[Place, object, int | None, bool], None]
"""Takes a record to be: its place, value, the end of a temporary one, and whether the file's is hidden."""


@dataclass(frozen=True)
class Alteration(Generic[Entity, Value]):
    """What shall be different about one entity's quotas."""

    entity: Entity
    values: Mapping[str, Value | None]
    """The quotas to set, and with None those to remove."""
    expires_at_ms: int | None = None
    """Until when `values` hold, in ms since the epoch; None: until they are changed again."""
    end_temporary: bool = False
    """Whether the entity's other temporary values end now."""
    address: str | None = None
    """What the name of an `ip` entity stands for, where that is not an address itself."""
    topic_id: str | None = None
    """The id of a topic, where it is known."""
    anew: bool = False
    """Whether it is another entity than the one that had this name: what the tools have set for that one is
    forgotten."""


def writer(
    records: list[tuple[Place, Setting]], change: Alteration[Any, Any], who: Identity, now_ms: int
) -> Write:
    """Adds to `records`, as made by somebody at this time."""

    def write(place: Place, value: object, expires_at_ms: int | None, removed: bool) -> None:
        assert value is None or isinstance(value, (float, int, str))
        setting = Setting(
            value=value,
            expires_at_ms=expires_at_ms,
            removed=removed,
            address=change.address,
            topic_id=change.topic_id,
            by=who.principal,
            client_id=who.client_id,
            origin=who.address,
            at_ms=now_ms,
        )
        records.append((place, setting))

    return write


class Sources(Generic[Entity, Value]):
    """Of quotas of clients, or of configs of topics and brokers."""

    def __init__(self, file: Layer[Entity, Value], now_ms: int) -> None:
        self.layers: Final[Layers[Entity, Value]] = Layers()
        self._staged: Layer[Entity, Value] | None = None
        self.layers.use(file, self.layers.tools, now_ms)

    @property
    def effective(self) -> dict[Entity, dict[str, Value]]:
        return self.layers.effective

    def overridden(self) -> int:
        """How many of the file's values the tools have set otherwise, or removed."""
        file = self.layers.file
        return sum(
            name in values.get(entity, ())
            for entity, names in self.layers.tools.lasting.items()
            for values in (file.lasting, file.temporary)
            for name in names
        )

    def changes(self, places: Sequence[tuple[Entity, str]]) -> dict[Entity, dict[str, Value | None]]:
        """What is in force at these places; None where nothing is."""
        changes: dict[Entity, dict[str, Value | None]] = {}
        for entity, name in places:
            changes.setdefault(entity, {})[name] = self.effective.get(entity, {}).get(name)
        return changes

    # The log

    @property
    def staging(self) -> bool:
        """Whether what the log says does not hold yet."""
        return self._staged is not None

    def read_anew(self) -> None:
        """The log will be read from its start: what it says holds from read_to_end() on, and not before."""
        self._staged = Layer()

    def read(self, place: Place, setting: Setting | None, now_ms: int) -> bool:
        """The log's next record; whether another value is in force."""
        entity = cast("Entity", place.entity)
        if self._staged is not None:
            _put(self._staged, place, setting)
            return False
        _put(self.layers.tools, place, setting)
        if place.temporary and setting is not None and setting.expires_at_ms is not None:
            self.layers.ends(entity, place.name, setting.expires_at_ms)
        return self.layers.refresh(entity, place.name, now_ms)

    def read_to_end(self, now_ms: int) -> bool:
        """The log has been read to its end once; whether it had been read anew."""
        staged, self._staged = self._staged, None
        if staged is None:
            return False
        self.layers.use(self.layers.file, staged, now_ms)
        return True

    # Changes

    def has_set(self, entity: Entity) -> bool:
        """Whether the tools have set or removed anything of an entity's."""
        tools = self.layers.tools
        return entity in tools.lasting or entity in tools.temporary

    def names_set(self, entity: Entity) -> set[str]:
        """What the tools have set or removed of an entity's."""
        tools = self.layers.tools
        return {*tools.lasting.get(entity, ()), *tools.temporary.get(entity, ())}

    def outcome(self, change: Alteration[Entity, Value]) -> dict[str, Value | None]:
        """What a change makes different for good, None for what is gone."""
        if not change.anew:
            return dict(change.values)
        file = self.layers.file.lasting.get(change.entity, {})
        return {
            **{name: file.get(name) for name in self.effective.get(change.entity, {})},
            **change.values,
        }

    def plan(self, change: Alteration[Entity, Value], write: Write) -> None:
        """Write the records that make the change; none for what is so already."""
        entity = change.entity
        key = cast("QuotaEntity | ConfigResource", entity)
        temporary = self.layers.tools.temporary.get(entity, {})
        if change.anew:
            self._forget(change, write)
            for name, value in change.values.items():
                write(Place(key, name), value, None, False)
            return
        for name, value in change.values.items():
            if change.expires_at_ms is not None:
                if temporary.get(name) != Temporary(value, change.expires_at_ms):
                    write(Place(key, name, True), value, change.expires_at_ms, False)
                continue
            if value != self.layers.lasting(entity, name):
                removed = value is None and self.layers.in_file(entity, name)
                write(Place(key, name), value, None, removed)
            if name in temporary:
                write(Place(key, name, True), None, None, False)
        if change.end_temporary:
            for name in temporary:
                if name not in change.values:
                    write(Place(key, name, True), None, None, False)

    def _forget(self, change: Alteration[Entity, Value], write: Write) -> None:
        names = self.names_set(change.entity)
        self.forget(change.entity, [name for name in names if name not in change.values], write)
        temporary = self.layers.tools.temporary.get(change.entity, {})
        for name in change.values:
            if name in temporary:
                write(
                    Place(cast("QuotaEntity | ConfigResource", change.entity), name, True), None, None, False
                )

    def forget(self, entity: Entity, names: Iterable[str], write: Write) -> None:
        """Write the records that end what the tools have set of these; what the file says holds again."""
        key = cast("QuotaEntity | ConfigResource", entity)
        tools = self.layers.tools
        for name in names:
            if name in tools.lasting.get(entity, {}):
                write(Place(key, name), None, None, False)
            if name in tools.temporary.get(entity, {}):
                write(Place(key, name, True), None, None, False)


def _put(layer: Layer[Entity, Value], place: Place, setting: Setting | None) -> None:
    entity, name = cast("Entity", place.entity), place.name
    value = None if setting is None else cast("Value | None", setting.value)
    if place.temporary:
        if setting is None or setting.expires_at_ms is None:
            layer.drop_temporary(entity, name)
        else:
            layer.set_temporary(entity, name, Temporary(value, setting.expires_at_ms))
    elif setting is None or (value is None and not setting.removed):
        layer.drop_lasting(entity, name)
    else:
        layer.set_lasting(entity, name, value)
