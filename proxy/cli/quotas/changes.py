"""The difference between existing and wanted quotas, and the alterations that remove it."""

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass

from proxy.cli.quotas.entity import Entity, Place, Quotas, Value, section, show_entity, sort_key
from proxy.cli.quotas.values import show_value


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """A change of one quota of one entity. None: the entity does not have the quota before or after."""

    entity: Entity
    key: str
    before: Value | None
    after: Value | None
    of_file: Value | None = None
    """For a removal: the value of the proxy's configuration file, which applies afterwards."""

    def __str__(self) -> str:
        """The line that `diff` shows: `~ user alice: producer_byte_rate 1000 -> 2000`."""
        what = f"{show_entity(self.entity)}: {self.key}"
        if self.before is None and self.after is not None:
            return f"+ {what} {show_value(self.after)}"
        if self.before is not None and self.after is None:
            then = "" if self.of_file is None else f" ({show_value(self.of_file)} in the proxy's file)"
            return f"- {what} {show_value(self.before)}{then}"
        assert self.before is not None
        assert self.after is not None
        return f"~ {what} {show_value(self.before)} -> {show_value(self.after)}"


@dataclass(frozen=True, slots=True)
class EntityAlteration:
    """A change of one entity: the keys to set; None removes a key.

    back_to_file: a removal drops what tools have set or removed, so that the value of the proxy's
    configuration file applies. Without keys, this concerns all quotas of the entity. Only quota proxies
    support it.
    """

    entity: Entity
    values: Mapping[str, Value | None]
    back_to_file: bool = False


def compare(
    have: Quotas,
    want: Quotas,
    *,
    prune: Collection[str] = (),
    ignored: Container[Place] = frozenset(),
    of_file: Quotas | None = None,
) -> list[QuotaChange]:
    """The changes that turn `have` into `want`, in a stable order.

    prune    the sections (SECTIONS) in which quotas that `want` lacks are removed
    ignored  quotas that are not changed
    of_file  the quotas of the proxy's configuration file, which are not removed
    """
    changes: list[QuotaChange] = []
    for entity in sorted({**want, **{each: () for each in have if section(each) in prune}}, key=sort_key):
        old, new = have.get(entity, {}), want.get(entity, {})
        file = (of_file or {}).get(entity, {})
        keys = {**old, **new} if section(entity) in prune else new
        for key in sorted(keys):
            if old.get(key) == new.get(key) or (entity, key) in ignored:
                continue
            if key not in new and old[key] == file.get(key):
                continue
            in_file = file.get(key) if key not in new else None
            changes.append(QuotaChange(entity, key, old.get(key), new.get(key), in_file))
    return changes


def kept(have: Quotas, want: Quotas, of_file: Quotas, prune: Collection[str]) -> list[Place]:
    """The quotas that `want` lacks and a prune leaves, because the proxy's configuration file has them.

    A quota of the file that tools have removed is not among them: `have` lacks it.
    """
    return [
        (entity, key)
        for entity, values in of_file.items()
        if section(entity) in prune
        for key in values
        if key not in want.get(entity, {}) and key in have.get(entity, {})
    ]


def alterations(changes: Iterable[QuotaChange], *, back_to_file: bool = False) -> list[EntityAlteration]:
    """The changes by entity. Each entity occurs once: a broker rejects a second entry for it (error 42).

    back_to_file: the server supports removals that never hide the values of its file.
    """
    by_entity: dict[Entity, dict[str, Value | None]] = {}
    for change in changes:
        by_entity.setdefault(change.entity, {})[change.key] = change.after
    return [
        EntityAlteration(entity, values, back_to_file and None in values.values())
        for entity, values in by_entity.items()
    ]


def summary(changes: Iterable[QuotaChange]) -> str:
    """The number of changes of each sort: `2 to add, 1 to change, 0 to remove`."""
    signs = [str(change)[0] for change in changes]
    return f"{signs.count('+')} to add, {signs.count('~')} to change, {signs.count('-')} to remove"
