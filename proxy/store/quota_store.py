"""QuotaStore: the quotas in force, out of the configuration file and of what was set with the tools.

What the tools set goes to a log first (the topic) and is in force once it has been read back from there, at
this proxy as at every other.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from proxy.errors import QuotaProxyError
from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits import Limits
from proxy.quota.networks import canonical_address, canonical_network
from proxy.store.layers import Layer, Layers, Quotas, Temporary
from proxy.store.records import Place, Setting

log = logging.getLogger(__name__)
LONGEST_SLEEP_SECONDS: Final = 30.0
"""The wall clock is looked at this often at least: it can be set while a timer runs."""
YIELD_EVERY: Final = 64
"""Entities worked through before the event loop gets a turn."""

Build = Callable[[Mapping[QuotaEntity, Mapping[str, float]]], Limits]


class StoreUnavailable(QuotaProxyError):
    """A change could not be stored; it may be tried again. str() says why."""


class StoreOff(QuotaProxyError):
    """There is nowhere to store a change, and there will not be."""


class ChangeLog(Protocol):
    """Where changes are stored."""

    async def append(self, changes: Sequence[tuple[Place, Setting]]) -> None:
        """Store the changes, and return when QuotaStore.read() has had them. Raises StoreUnavailable."""


@dataclass(frozen=True, slots=True)
class Change:
    """What shall be different about one entity's quotas."""

    entity: QuotaEntity
    values: Mapping[str, float | None]
    """The quotas to set, and with None those to remove."""
    expires_at_ms: int | None = None
    """Until when `values` hold, in ms since the epoch; None: until they are changed again."""
    end_temporary: bool = False
    """Whether the entity's other temporary values end now."""
    address: str | None = None
    """What the name of an `ip` entity stands for, where that is not an address itself."""


@dataclass(slots=True)
class FileQuotas:
    """The file's part: its quotas, and how limits are made of quotas under its settings."""

    build: Build
    rules: object = None
    """What `build` goes by beside the quotas: equal where it makes the same of them."""
    layer: Layer = field(default_factory=Layer)


class QuotaStore:
    """The quotas in force. `changed` gets each new snapshot."""

    def __init__(
        self,
        file: FileQuotas,
        changed: Callable[[Limits], None],
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.log: ChangeLog | None = None
        """None: changes are refused."""
        self._changed: Final = changed
        self._wall_ms: Final = wall_ms
        self._build = file.build
        self._rules = file.rules
        self._layers: Final = Layers()
        self._staged: Layer | None = None
        self._addresses: Final[dict[str, str]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._layers.use(file.layer, self._layers.tools, wall_ms())
        self.limits = self._rebuild()
        """The snapshot in force."""

    def start(self) -> None:
        """Have temporary values end in time, from now on."""
        self._arm()

    @property
    def effective(self) -> Quotas:
        """Every entity's quotas as they are in force; not to be changed, and changing under an await."""
        return self._layers.effective

    # The file

    def use_file(self, file: FileQuotas) -> None:
        """Take the file anew."""
        same_rules, self._rules = file.rules == self._rules, file.rules
        self._build = file.build
        places = self._layers.use_file(file.layer, self._wall_ms())
        self._tell_overridden()
        if same_rules:
            self._publish(places)
        else:
            self._replace()

    def _tell_overridden(self) -> None:
        """Say in the log how many of the file's quotas the tools have set otherwise, or removed."""
        tools = self._layers.tools.lasting
        count = sum(name in tools.get(entity, ()) for entity, name in self._layers.file.places())
        if count:
            log.info("%d of the file's quotas are overridden by what was set with tools", count)

    # The log

    def read_anew(self) -> None:
        """The log will be read from its start: what it says holds from read_to_end() on, and not before."""
        self._staged = Layer()

    def read(self, changes: Iterable[tuple[Place, Setting | None]]) -> None:
        """The log's next records, in their order."""
        if self._staged is not None:
            for place, setting in changes:
                self._put(self._staged, place, setting)
            return
        now_ms = self._wall_ms()
        places = []
        for place, setting in changes:
            self._put(self._layers.tools, place, setting)
            if place.temporary and setting is not None and setting.expires_at_ms is not None:
                self._layers.ends(place.entity, place.name, setting.expires_at_ms)
            if self._layers.refresh(place.entity, place.name, now_ms):
                places.append((place.entity, place.name))
        self._publish(places)

    def read_to_end(self) -> None:
        """The log has been read to its end once."""
        if self._staged is not None:
            staged, self._staged = self._staged, None
            self._layers.use(self._layers.file, staged, self._wall_ms())
            self._tell_overridden()
            self._replace()

    def _put(self, layer: Layer, place: Place, setting: Setting | None) -> None:
        entity, name = place.entity, place.name
        if setting is not None and setting.address is not None and entity.ip is not None:
            self._addresses[entity.ip] = setting.address
        if place.temporary:
            if setting is None or setting.expires_at_ms is None:
                layer.drop_temporary(entity, name)
            else:
                layer.set_temporary(entity, name, Temporary(setting.value, setting.expires_at_ms))
        elif setting is None or (setting.value is None and not setting.removed):
            layer.drop_lasting(entity, name)
        else:
            layer.set_lasting(entity, name, setting.value)

    # Changes

    async def alter(self, changes: Sequence[Change], who: Identity) -> None:
        """Store the changes; they are in force, here at least, when this returns.

        Raises StoreUnavailable where the log cannot be reached, StoreOff where there is none.
        """
        if self.log is None:
            raise StoreOff(
                "this proxy takes its quotas from its configuration file alone (quotas.store: none); "
                "change them there"
            )
        planned: list[tuple[Place, Setting]] = []
        for number, change in enumerate(changes):
            planned += self._plan(change, who)
            if number % YIELD_EVERY == YIELD_EVERY - 1:
                await asyncio.sleep(0)
        if planned:
            await self.log.append(planned)

    def _plan(self, change: Change, who: Identity) -> list[tuple[Place, Setting]]:
        """The records that make the change; none for what is so already."""
        now_ms = self._wall_ms()
        entity = change.entity
        temporary = self._layers.tools.temporary.get(entity, {})
        planned: list[tuple[Place, Setting]] = []

        def add(
            place: Place, value: float | None, expires_at_ms: int | None = None, removed: bool = False
        ) -> None:
            setting = Setting(
                value=value,
                expires_at_ms=expires_at_ms,
                removed=removed,
                address=change.address,
                by=who.principal,
                client_id=who.client_id,
                origin=who.address,
                at_ms=now_ms,
            )
            planned.append((place, setting))

        for name, value in change.values.items():
            if change.expires_at_ms is not None:
                if temporary.get(name) != Temporary(value, change.expires_at_ms):
                    add(Place(entity, name, True), value, change.expires_at_ms)
                continue
            if value != self._layers.lasting(entity, name):
                add(Place(entity, name), value, removed=value is None and self._layers.in_file(entity, name))
            if name in temporary:
                add(Place(entity, name, True), None)
        if change.end_temporary:
            for name in temporary:
                if name not in change.values:
                    add(Place(entity, name, True), None)
        return planned

    # In force

    def _publish(self, places: Sequence[tuple[QuotaEntity, str]]) -> None:
        """Have the changes of these quotas in force."""
        if places:
            changes: dict[QuotaEntity, dict[str, float | None]] = {}
            for entity, name in places:
                value = self._layers.effective.get(entity, {}).get(name)
                changes.setdefault(self._enforced(entity), {})[name] = value
            self.limits = self.limits.with_changes(changes)
            self._changed(self.limits)
        self._arm()

    def _replace(self) -> None:
        self.limits = self._rebuild()
        self._changed(self.limits)
        self._arm()

    def _rebuild(self) -> Limits:
        return self._build({self._enforced(entity): values for entity, values in self.effective.items()})

    def _enforced(self, entity: QuotaEntity) -> QuotaEntity:
        """The entity as Limits takes it: an ip in its one spelling, a host name as its address."""
        if not entity.ip:
            return entity
        try:
            ip = canonical_network(entity.ip) if "/" in entity.ip else canonical_address(entity.ip)
        except ValueError:
            ip = self._addresses.get(entity.ip, entity.ip)
        return QuotaEntity(None, None, ip)

    # Time

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        end = self._layers.next_end()
        if end is not None:
            seconds = max((end - self._wall_ms()) / 1000, 0.0)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(min(seconds, LONGEST_SLEEP_SECONDS), self._expire)

    def _expire(self) -> None:
        self._timer = None
        places = self._layers.expire(self._wall_ms())
        for entity, name in places:
            value = self._layers.effective.get(entity, {}).get(name)
            log.info(
                "%s: the temporary %s is over; %s",
                entity,
                name,
                "no limit" if value is None else f"now {value:g}",
            )
        self._publish(places)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
