"""Sources: the file and the log of the tools' changes, as layers, and the records that make a change."""

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast

from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits.resources import ConfigResource
from proxy.store.layers import Layer, Layers, Temporary
from proxy.store.quota_records import Place, Setting

Entity = TypeVar("Entity", bound=Hashable)
Value = TypeVar("Value")
Write = Callable[[Place, object, int | None, bool], None]
"""Adds a record: its place, its value, the expiry of a temporary value, and whether it hides the file's."""


@dataclass(frozen=True)
class Alteration(Generic[Entity, Value]):
    """A change of the quotas of one entity."""

    entity: Entity
    values: Mapping[str, Value | None]
    """The quotas to set; None removes a quota."""
    expires_at_ms: int | None = None
    """Expiry of `values`, in ms since the epoch; None: they are lasting."""
    end_temporary: bool = False
    """Whether to end the other temporary values of the entity."""
    address: str | None = None
    """The address of an `ip` entity whose name is a host name."""
    topic_id: str | None = None
    """The id of the topic, if known."""
    anew: bool = False
    """Whether this is a new entity with the name of an earlier one, such as a recreated topic: values that
    tools set for the earlier one are dropped."""
    back_to_file: bool = False
    """Whether a removal drops what tools set or removed, so that the file's value takes effect again. With
    this and without `values`, the whole entity returns to the file."""
    renew: Callable[[Mapping[str, Value]], Mapping[str, Value | None]] | None = None
    """Computes `values` from the values in force, if the change depends on them: other changes may be
    stored between the request and this one. May raise Conflict. Only for configs."""


def writer(
    records: list[tuple[Place, Setting]], change: Alteration[Any, Any], who: Identity, now_ms: int
) -> Write:
    """A function that appends to `records`, with the author and the time of the change."""

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
    """The layers of client quotas, or of configs of topics and brokers."""

    def __init__(self, file: Layer[Entity, Value], now_ms: int) -> None:
        self.layers: Final[Layers[Entity, Value]] = Layers()
        self._staged: Layer[Entity, Value] | None = None
        self.layers.use(file, self.layers.tools, now_ms)

    @property
    def effective(self) -> dict[Entity, dict[str, Value]]:
        return self.layers.effective

    def overridden(self) -> int:
        """The number of the file's values that tools override or remove."""
        file = self.layers.file
        return sum(
            name in values.get(entity, ())
            for entity, names in self.layers.tools.lasting.items()
            for values in (file.lasting, file.temporary)
            for name in names
        )

    def changes(self, places: Sequence[tuple[Entity, str]]) -> dict[Entity, dict[str, Value | None]]:
        """The effective values at these places; None: no value."""
        changes: dict[Entity, dict[str, Value | None]] = {}
        for entity, name in places:
            changes.setdefault(entity, {})[name] = self.effective.get(entity, {}).get(name)
        return changes

    # The log

    @property
    def staging(self) -> bool:
        """Whether the log is being read from its start, and its values are not effective yet."""
        return self._staged is not None

    def read_anew(self) -> None:
        """Start reading the log from its start. Its values take effect in read_to_end()."""
        self._staged = Layer()

    def read(self, place: Place, setting: Setting | None, now_ms: int) -> bool:
        """Apply the next record of the log. Returns whether an effective value changed."""
        entity = cast("Entity", place.entity)
        if self._staged is not None:
            _put(self._staged, place, setting)
            return False
        _put(self.layers.tools, place, setting)
        if place.temporary and setting is not None and setting.expires_at_ms is not None:
            self.layers.ends(entity, place.name, setting.expires_at_ms)
        return self.layers.refresh(entity, place.name, now_ms)

    def read_to_end(self, now_ms: int) -> bool:
        """Note that the log was read to its end. If it was read from its start, its values take effect now.
        Returns whether that is so.
        """
        staged, self._staged = self._staged, None
        if staged is None:
            return False
        self.layers.use(self.layers.file, staged, now_ms)
        return True

    # Changes

    def has_set(self, entity: Entity) -> bool:
        """Whether tools set or removed a value of the entity."""
        tools = self.layers.tools
        return entity in tools.lasting or entity in tools.temporary

    def names_set(self, entity: Entity) -> set[str]:
        """The quotas of the entity that tools set or removed."""
        tools = self.layers.tools
        return {*tools.lasting.get(entity, ()), *tools.temporary.get(entity, ())}

    def outcome(self, change: Alteration[Entity, Value]) -> dict[str, Value | None]:
        """The lasting values after a change; None: removed."""
        file = self.layers.file.lasting.get(change.entity, {})
        if change.back_to_file:
            returned = {name: file.get(name) for name in self._returned(change)}
            return {**change.values, **returned}
        if not change.anew:
            return dict(change.values)
        return {
            **{name: file.get(name) for name in self.effective.get(change.entity, {})},
            **change.values,
        }

    def plan(
        self, change: Alteration[Entity, Value], write: Write, outdated: Container[str] = frozenset()
    ) -> None:
        """Write the records that make the change; none where nothing differs.

        `outdated` quotas have a record of an earlier entity of the same name: they get a new record in any
        case.
        """
        entity = change.entity
        key = cast("QuotaEntity | ConfigResource", entity)
        temporary = self.layers.tools.temporary.get(entity, {})
        if change.anew:
            self._forget(change, write)
            for name, value in change.values.items():
                write(Place(key, name), value, None, False)
            return
        returned = self._returned(change)
        self.forget(entity, returned, write)
        for name, value in change.values.items():
            if name in returned:
                continue
            if change.expires_at_ms is not None:
                if temporary.get(name) != Temporary(value, change.expires_at_ms):
                    write(Place(key, name, True), value, change.expires_at_ms, False)
                continue
            if name in outdated or value != self.layers.lasting(entity, name):
                removed = value is None and self.layers.in_file(entity, name)
                write(Place(key, name), value, None, removed)
            if name in temporary:
                write(Place(key, name, True), None, None, False)
        if change.end_temporary:
            for name in temporary:
                if name not in change.values:
                    write(Place(key, name, True), None, None, False)

    def _returned(self, change: Alteration[Entity, Value]) -> list[str]:
        """The quotas that a change returns to the file."""
        if not change.back_to_file:
            return []
        names = change.values or dict.fromkeys(sorted(self.names_set(change.entity)))
        return [name for name, value in names.items() if value is None]

    def _forget(self, change: Alteration[Entity, Value], write: Write) -> None:
        """Write the records that drop what tools set for an earlier entity of the same name."""
        names = self.names_set(change.entity)
        self.forget(change.entity, [name for name in names if name not in change.values], write)
        temporary = self.layers.tools.temporary.get(change.entity, {})
        for name in change.values:
            if name in temporary:
                write(
                    Place(cast("QuotaEntity | ConfigResource", change.entity), name, True), None, None, False
                )

    def forget(self, entity: Entity, names: Iterable[str], write: Write) -> None:
        """Write the records that drop the tools' values of these quotas; the file's take effect again."""
        key = cast("QuotaEntity | ConfigResource", entity)
        tools = self.layers.tools
        for name in names:
            if name in tools.lasting.get(entity, {}):
                write(Place(key, name), None, None, False)
            if name in tools.temporary.get(entity, {}):
                write(Place(key, name, True), None, None, False)


def _put(layer: Layer[Entity, Value], place: Place, setting: Setting | None) -> None:
    """Apply a record to the tools' layer; None stands for a tombstone."""
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
