"""QuotaStore: the effective quotas, merged from the configuration file and the changes of tools.

Changes of tools are written to a log (the topic). They take effect when they are read back from it, at this
proxy as at every other.
"""

import asyncio
import dataclasses
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec.structs import replace

from proxy.errors import QuotaProxyError
from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.store.config_conflicts import ConfigConflicts
from proxy.store.layers import SLICE, ClientLayer, ConfigLayer, Layers, Quotas
from proxy.store.published_limits import Build, PublishedLimits
from proxy.store.quota_records import Place, Setting, Unreadable
from proxy.store.sources import Alteration, Sources, writer

log = logging.getLogger(__name__)
LONGEST_SLEEP_SECONDS: Final = 30.0
"""Longest timer. The wall clock can be set while a timer runs, so it is checked at least this often."""
YIELD_EVERY: Final = 64
"""Entities to process before yielding to the event loop."""
FILE_ALONE: Final = "quotas of this proxy can only be changed in its configuration file (quotas.store: none)"


class StoreUnavailable(QuotaProxyError):
    """A change could not be stored, but can be retried. str() says why."""


class StoreOff(QuotaProxyError):
    """The proxy has no store for changes (quotas.store: none)."""


class ChangeLog(Protocol):
    """Stores changes."""

    problem: str
    """Why nothing can be stored at the moment; empty if no problem is known."""

    async def append(self, changes: Sequence[tuple[Place, Setting]]) -> None:
        """Store the changes, and return after QuotaStore.read() applied them. Raises StoreUnavailable."""


class Conflict(QuotaProxyError):
    """Topics and brokers cannot have these configs together. str() says why."""


ClientQuotaAlteration = Alteration[QuotaEntity, float]
"""A change of client quotas."""
ConfigChange = Alteration[ConfigResource, str]
"""A change of configs of a topic or a broker. The values are valid and canonical (ConfigKey.canonical())."""


@dataclass(slots=True)
class FileQuotas:
    """The quotas of the file, and the function that builds limits from quotas under its settings."""

    build: Build
    settings: object = None
    """The settings that `build` applies. Two files with equal settings build equal limits of equal quotas."""
    layer: ClientLayer = field(default_factory=ClientLayer)
    """The quotas of users, client ids and addresses."""
    configs: ConfigLayer = field(default_factory=ConfigLayer)
    """The configs of topics and brokers."""
    retains_deleted: bool = False
    """Whether the configs of a deleted topic apply to the next topic of its name."""


class QuotaStore:
    """The effective quotas. Calls `changed` with each new snapshot."""

    def __init__(
        self,
        file: FileQuotas,
        changed: Callable[[Limits], None],
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        rules: ConfigRules | None = None,
    ) -> None:
        """`rules` define the configs of topics and brokers; None: there are none."""
        self.log: ChangeLog | None = None
        """None: changes are rejected with StoreOff."""
        self._wall_ms: Final = wall_ms
        self._rules: Final = rules or ConfigRules([])
        self._settings = file.settings
        self.retains_deleted = file.retains_deleted
        """Whether the configs of a deleted topic apply to the next topic of its name."""
        self._clients: Final = Sources(file.layer, wall_ms())
        self._configs: Final = Sources(file.configs, wall_ms())
        self._topic_ids: Final[dict[str, dict[str, str]]] = {}
        """By topic and config: the id of the topic for which a tool set it; empty if unknown."""
        self._one_at_a_time: Final = asyncio.Lock()
        """Changes of configs are checked and stored one by one: each is checked against those before."""
        self._timer: asyncio.TimerHandle | None = None
        self._published: Final = PublishedLimits(
            file.build, self._rules, changed, clients=self._clients, configs=self._configs
        )

    def start(self) -> None:
        """Start the timer that ends temporary values."""
        self._arm()

    @property
    def limits(self) -> Limits:
        """The current snapshot."""
        return self._published.limits

    @property
    def effective(self) -> Quotas:
        """The effective quotas of every entity. Read-only for callers; may change at an await."""
        return self._clients.effective

    @property
    def client_layers(self) -> Layers[QuotaEntity, float]:
        """The layers of client quotas. Read-only for callers; may change at an await."""
        return self._clients.layers

    @property
    def config_layers(self) -> Layers[ConfigResource, str]:
        """The layers of the configs of topics and brokers. Read-only for callers; may change at an await."""
        return self._configs.layers

    def now_ms(self) -> int:
        """The time by which temporary values end, in ms since the epoch."""
        return self._wall_ms()

    def lasting_entities(self) -> list[QuotaEntity]:
        """The entities with a lasting value in a layer, effective or not."""
        layers = self._clients.layers
        return list({**layers.file.lasting, **layers.tools.lasting})

    def lasting(self, entity: QuotaEntity) -> dict[str, float]:
        """The quotas of an entity without temporary values."""
        layers = self._clients.layers
        names = {**layers.file.lasting.get(entity, {}), **layers.tools.lasting.get(entity, {})}
        values = {name: layers.lasting(entity, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def of_file(self, entity: QuotaEntity) -> dict[str, float]:
        """The lasting quotas of an entity in the file, effective or not."""
        values = self._clients.layers.file.lasting.get(entity, {})
        return {name: value for name, value in values.items() if value is not None}

    # The file

    async def use_file(self, file: FileQuotas) -> None:
        """Replace the quotas of the file.

        They take effect SLICE entities at a time, so that the event loop can run in between.
        """
        same_settings, self._settings = file.settings == self._settings, file.settings
        self._published.build = file.build
        self.retains_deleted = file.retains_deleted
        now_ms = self._wall_ms()
        layers = self._clients.layers
        before, entities = layers.use_file(file.layer)
        clients: list[tuple[QuotaEntity, str]] = []
        for start in range(0, len(entities), SLICE):
            if start > 0:
                self._publish(clients, ())
                await asyncio.sleep(0)
            clients = layers.renew(before, entities[start : start + SLICE], now_ms)
        configs = self._configs.layers.renew(*self._configs.layers.use_file(file.configs), now_ms)
        self._log_overridden()
        if same_settings:
            self._publish(clients, configs)
        else:
            self._replace()

    def _log_overridden(self) -> None:
        """Log how many of the file's quotas are overridden."""
        count = self._clients.overridden() + self._configs.overridden()
        if count:
            log.info("quotas: changes with tools override %d quotas of the file", count)

    # The log

    def read_anew(self) -> None:
        """Start reading the log from its start. Its values take effect in read_to_end()."""
        self._clients.read_anew()
        self._configs.read_anew()

    def check(self, place: Place, setting: Setting | None) -> None:
        """Raise Unreadable if a record of the log has no valid value."""
        entity = place.entity
        if setting is None or setting.value is None or not isinstance(entity, ConfigResource):
            return
        key = self._rules.keys(entity.type).get(place.name)
        problem = key.problem(str(setting.value)) if key is not None else ""
        if problem:
            raise Unreadable(f"{entity}: {problem}")

    def read(self, changes: Iterable[tuple[Place, Setting | None]]) -> None:
        """Apply the next records of the log. check() has found them valid."""
        now_ms = self._wall_ms()
        clients: list[tuple[QuotaEntity, str]] = []
        configs: list[tuple[ConfigResource, str]] = []
        for place, setting in changes:
            entity = place.entity
            if isinstance(entity, ConfigResource):
                if self._take_config(entity, place, setting, now_ms):
                    configs.append((entity, place.name))
                continue
            if setting is not None and setting.address is not None and entity.ip is not None:
                clients += self._published.move_host(entity, setting.address)
            if self._clients.read(place, setting, now_ms):
                clients.append((entity, place.name))
        self._publish(clients, configs)

    def _take_config(
        self, resource: ConfigResource, place: Place, setting: Setting | None, now_ms: int
    ) -> bool:
        key = self._rules.keys(resource.type).get(place.name)
        if key is not None and setting is not None and setting.value is not None:
            setting = replace(setting, value=key.canonical(str(setting.value)))
        if resource.type == TOPIC and setting is not None:
            self._topic_ids.setdefault(resource.name, {})[place.name] = setting.topic_id or ""
        changed = self._configs.read(place, setting, now_ms)
        if not self._configs.staging and not self._configs.has_set(resource):
            self._topic_ids.pop(resource.name, None)
        return changed

    def read_to_end(self) -> None:
        """Note that the log was read to its end. Its values take effect now if it was read from its start."""
        now_ms = self._wall_ms()
        if self._clients.read_to_end(now_ms) and self._configs.read_to_end(now_ms):
            self._log_overridden()
            self._replace()

    # Changes

    def check_open(self) -> None:
        """Raise StoreUnavailable or StoreOff if it is known that nothing can be stored now."""
        if self.log is None:
            raise StoreOff(self.off)
        if self.log.problem:
            raise StoreUnavailable(f"cannot store changes: {self.log.problem}; try again")

    @property
    def off(self) -> str:
        """Why this proxy never stores changes; empty if it does."""
        return "" if self.log is not None else FILE_ALONE

    async def alter(self, changes: Sequence[ClientQuotaAlteration], who: Identity) -> None:
        """Store the changes. When this returns they are effective at this proxy, and soon at the others.

        Raises StoreUnavailable if the log is unavailable, StoreOff if there is none.
        """
        records: list[tuple[Place, Setting]] = []
        for number, change in enumerate(changes):
            self._clients.plan(change, writer(records, change, who, self._wall_ms()))
            if number % YIELD_EVERY == YIELD_EVERY - 1:
                await asyncio.sleep(0)
        await self._append(records)

    async def _append(self, records: Sequence[tuple[Place, Setting]]) -> None:
        if self.log is None:
            raise StoreOff(self.off)
        if records:
            await self.log.append(records)

    # Configs of topics and brokers

    @property
    def configs(self) -> dict[ConfigResource, dict[str, str]]:
        """The effective configs of every topic and broker. Read-only for callers; may change at an await."""
        return self._configs.effective

    def has_set(self, resource: ConfigResource) -> bool:
        """Whether tools set or removed a config of the topic or broker."""
        return self._configs.has_set(resource)

    def topics_set(self) -> set[str]:
        """The names of the topics on which tools set or removed a config."""
        tools = self._configs.layers.tools
        return {
            resource.name
            for resource in (*tools.lasting, *tools.temporary)
            if resource.type == TOPIC and resource.name != DEFAULT_RESOURCE
        }

    def topic_ids(self, topic: str) -> dict[str, str]:
        """For each config that tools set or removed on the topic, the id of the topic at that time; empty if
        unknown.
        """
        ids = self._topic_ids.get(topic, {})
        names = self._configs.names_set(ConfigResource(TOPIC, topic))
        return {name: ids.get(name, "") for name in sorted(names)}

    async def forget_topic_configs(self, topic: str, set_for: Mapping[str, str], who: Identity) -> list[str]:
        """Drop the tools' values of these configs, except those that have been set for another topic since.
        Returns the names of those that were dropped. Raises what alter() raises.

        `set_for` has the topic id of each config, as topic_ids() returned it.
        """
        async with self._one_at_a_time:
            current = self.topic_ids(topic)
            names = [name for name, topic_id in set_for.items() if current.get(name) == topic_id]
            resource = ConfigResource(TOPIC, topic)
            records: list[tuple[Place, Setting]] = []
            write = writer(records, ConfigChange(resource, {}), who, self._wall_ms())
            self._configs.forget(resource, names, write)
            await self._append(records)
            return names

    def conflicts(self) -> ConfigConflicts:
        """Begin to check whether changes conflict with the configs in force."""
        return ConfigConflicts(self._rules.checks(self.limits.resources), self._configs.outcome)

    def _outdated(self, change: ConfigChange) -> set[str]:
        """The configs that were set for an earlier topic of the same name."""
        if change.entity.type != TOPIC or change.topic_id is None:
            return set()
        ids = self.topic_ids(change.entity.name)
        return {name for name, topic_id in ids.items() if topic_id not in ("", change.topic_id)}

    def _renewed(self, change: ConfigChange) -> ConfigChange:
        """The change, with values that depend on those in force now. Raises Conflict."""
        if change.renew is None:
            return change
        values = change.renew(self._configs.effective.get(change.entity, {}))
        return dataclasses.replace(change, values=values)

    async def alter_configs(self, changes: Sequence[ConfigChange], who: Identity) -> None:
        """Store the changes. When this returns they are effective at this proxy, and soon at the others.

        Raises Conflict if topics and brokers cannot have them together, and what alter() raises.
        """
        async with self._one_at_a_time:
            conflicts = self.conflicts()
            renewed: list[ConfigChange] = []
            for start in range(0, len(changes), YIELD_EVERY):
                some = [self._renewed(change) for change in changes[start : start + YIELD_EVERY]]
                conflicts.change(some)
                renewed += some
                await asyncio.sleep(0)
            problem = conflicts.conflict()
            if problem:
                raise Conflict(problem)
            records: list[tuple[Place, Setting]] = []
            for number, change in enumerate(renewed):
                write = writer(records, change, who, self._wall_ms())
                self._configs.plan(change, write, self._outdated(change))
                if number % YIELD_EVERY == YIELD_EVERY - 1:
                    await asyncio.sleep(0)
            await self._append(records)

    # Snapshots and time

    def _publish(
        self, clients: Sequence[tuple[QuotaEntity, str]], configs: Sequence[tuple[ConfigResource, str]]
    ) -> None:
        """Publish a snapshot with the current values of these quotas."""
        self._published.update(clients, configs)
        self._arm()

    def _replace(self) -> None:
        """Build and publish a snapshot."""
        self._published.rebuild()
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        ends = [self._clients.layers.next_end(), self._configs.layers.next_end()]
        end = min([end for end in ends if end is not None], default=None)
        if end is not None:
            seconds = max((end - self._wall_ms()) / 1000, 0.0)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(min(seconds, LONGEST_SLEEP_SECONDS), self._expire)

    def _expire(self) -> None:
        self._timer = None
        now_ms = self._wall_ms()
        clients = self._clients.layers.expire(now_ms)
        configs = self._configs.layers.expire(now_ms)
        for entity, values in self._clients.changes(clients).items():
            for name, value in values.items():
                now = "no limit" if value is None else f"{value:g}"
                log.info("quotas: %s: temporary %s expired; now %s", entity, name, now)
        for resource, texts in self._configs.changes(configs).items():
            for name, text in texts.items():
                log.info("quotas: %s: temporary %s expired; now %s", resource, name, text or "not set")
        self._publish(clients, configs)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
