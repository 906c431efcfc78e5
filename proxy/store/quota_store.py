"""QuotaStore: the quotas in force, out of the configuration file and of what was set with the tools.

What the tools set goes to a log first (the topic) and is in force once it has been read back from there, at
this proxy as at every other.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from proxy.errors import QuotaProxyError
from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource, Resources
from proxy.quota.networks import canonical_address, canonical_network
from proxy.store.layers import SLICE, ClientLayer, ConfigLayer, Quotas
from proxy.store.records import Place, Setting
from proxy.store.sources import Alteration, Sources, writer

log = logging.getLogger(__name__)
LONGEST_SLEEP_SECONDS: Final = 30.0
"""The wall clock is looked at this often at least: it can be set while a timer runs."""
YIELD_EVERY: Final = 64
"""Entities worked through before the event loop gets a turn."""
FILE_ALONE: Final = (
    "this proxy takes its quotas from its configuration file alone (quotas.store: none); change them there"
)

Value = TypeVar("Value", str, str | None)
Build = Callable[[Mapping[QuotaEntity, Mapping[str, float]]], Limits]


class StoreUnavailable(QuotaProxyError):
    """A change could not be stored; it may be tried again. str() says why."""


class StoreOff(QuotaProxyError):
    """There is nowhere to store a change, and there will not be."""


class ChangeLog(Protocol):
    """Where changes are stored."""

    problem: str
    """Why nothing can be stored at the moment; empty where that is not known."""

    async def append(self, changes: Sequence[tuple[Place, Setting]]) -> None:
        """Store the changes, and return when QuotaStore.read() has had them. Raises StoreUnavailable."""


class Conflict(QuotaProxyError):
    """Topics and brokers cannot have such configs together; str() says why."""


ClientQuotaAlteration = Alteration[QuotaEntity, float]
"""Of a client's quotas."""
ConfigChange = Alteration[ConfigResource, str]
"""Of a topic's or a broker's configs; values are fit, and in the spelling of ConfigKey.canonical()."""


@dataclass(slots=True)
class FileQuotas:
    """The file's part: its quotas, and how limits are made of quotas under its settings."""

    build: Build
    settings: object = None
    """The settings that `build` applies. Two files with equal settings build equal limits of equal quotas."""
    layer: ClientLayer = field(default_factory=ClientLayer)
    configs: ConfigLayer = field(default_factory=ConfigLayer)


class QuotaStore:
    """The quotas in force. `changed` gets each new snapshot."""

    def __init__(
        self,
        file: FileQuotas,
        changed: Callable[[Limits], None],
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        rules: ConfigRules | None = None,
    ) -> None:
        """`rules` say which configs of topics and brokers there are; None: there are none."""
        self.log: ChangeLog | None = None
        """None: changes are rejected."""
        self._changed: Final = changed
        self._wall_ms: Final = wall_ms
        self._rules: Final = rules or ConfigRules([])
        self._build = file.build
        self._settings = file.settings
        self._clients: Final = Sources(file.layer, wall_ms())
        self._configs: Final = Sources(file.configs, wall_ms())
        self._topic_ids: Final[dict[str, dict[str, str]]] = {}
        self._addresses: Final[dict[str, str]] = {}
        self._one_at_a_time: Final = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._conflict = ""
        self.limits = self._rebuild()
        """The snapshot in force."""

    def start(self) -> None:
        """Have temporary values end in time, from now on."""
        self._arm()

    @property
    def effective(self) -> Quotas:
        """Every entity's quotas as they are in force; not to be changed, and changing under an await."""
        return self._clients.effective

    def lasting_entities(self) -> list[QuotaEntity]:
        """The entities of which anything lasting is said, in force or not."""
        layers = self._clients.layers
        return list({**layers.file.lasting, **layers.tools.lasting})

    def lasting(self, entity: QuotaEntity) -> dict[str, float]:
        """An entity's quotas as they hold when nothing temporary does."""
        layers = self._clients.layers
        names = {**layers.file.lasting.get(entity, {}), **layers.tools.lasting.get(entity, {})}
        values = {name: layers.lasting(entity, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    # The file

    async def use_file(self, file: FileQuotas) -> None:
        """Take the file anew.

        Where it has very many quotas they come into force SLICE entities at a time, and the event loop has
        its turns.
        """
        same_settings, self._settings = file.settings == self._settings, file.settings
        self._build = file.build
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
        self._tell_overridden()
        if same_settings:
            self._publish(clients, configs)
        else:
            self._replace()

    def _tell_overridden(self) -> None:
        """Say in the log how many of the file's quotas the tools have set otherwise, or removed."""
        count = self._clients.overridden() + self._configs.overridden()
        if count:
            log.info("%d of the file's quotas are overridden by what was set with tools", count)

    # The log

    def read_anew(self) -> None:
        """The log will be read from its start: what it says holds from read_to_end() on, and not before."""
        self._clients.read_anew()
        self._configs.read_anew()

    def read(self, changes: Iterable[tuple[Place, Setting | None]]) -> None:
        """The log's next records, in their order."""
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
                self._addresses[entity.ip] = setting.address
            if self._clients.read(place, setting, now_ms):
                clients.append((entity, place.name))
        self._publish(clients, configs)

    def _take_config(
        self, resource: ConfigResource, place: Place, setting: Setting | None, now_ms: int
    ) -> bool:
        key = self._rules.keys(resource.type).get(place.name)
        if key is not None and setting is not None and setting.value is not None:
            problem = key.problem(str(setting.value))
            if problem:
                log.warning("quotas: a record about %s is skipped: %s", resource, problem)
                return False
        if resource.type == TOPIC and setting is not None:
            self._topic_ids.setdefault(resource.name, {})[place.name] = setting.topic_id or ""
        changed = self._configs.read(place, setting, now_ms)
        if not self._configs.staging and not self._configs.has_set(resource):
            self._topic_ids.pop(resource.name, None)
        return changed

    def read_to_end(self) -> None:
        """The log has been read to its end once."""
        now_ms = self._wall_ms()
        if self._clients.read_to_end(now_ms) and self._configs.read_to_end(now_ms):
            self._tell_overridden()
            self._replace()

    # Changes

    def check_open(self) -> None:
        """Raises StoreUnavailable or StoreOff where it is known that nothing can be stored now."""
        if self.log is None:
            raise StoreOff(self.off)
        if self.log.problem:
            raise StoreUnavailable(f"changes cannot be stored: {self.log.problem}; try again")

    @property
    def off(self) -> str:
        """Why nothing can ever be changed; empty when it can."""
        return "" if self.log is not None else FILE_ALONE

    async def alter(self, changes: Sequence[ClientQuotaAlteration], who: Identity) -> None:
        """Store the changes; they are in force, here at least, when this returns.

        Raises StoreUnavailable where the log cannot be reached, StoreOff where there is none.
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
        """Every topic's and broker's configs as they are in force; not to be changed, and changing under an
        await.
        """
        return self._configs.effective

    def has_set(self, resource: ConfigResource) -> bool:
        """Whether the tools have set or removed any config of a topic's or a broker's."""
        return self._configs.has_set(resource)

    def topics_set(self) -> set[str]:
        """Topics, by name, of which the tools have set or removed a config."""
        tools = self._configs.layers.tools
        return {
            resource.name
            for resource in (*tools.lasting, *tools.temporary)
            if resource.type == TOPIC and resource.name != DEFAULT_RESOURCE
        }

    def topic_ids(self, topic: str) -> dict[str, str]:
        """Of each config that the tools have set or removed of a topic, the id of the topic for which; empty
        where that is not known.
        """
        ids = self._topic_ids.get(topic, {})
        names = self._configs.names_set(ConfigResource(TOPIC, topic))
        return {name: ids.get(name, "") for name in sorted(names)}

    async def forget_configs(self, resource: ConfigResource, names: Sequence[str], who: Identity) -> None:
        """Forget what the tools have set of these. Raises what alter() raises."""
        async with self._one_at_a_time:
            records: list[tuple[Place, Setting]] = []
            write = writer(records, ConfigChange(resource, {}), who, self._wall_ms())
            self._configs.forget(resource, names, write)
            await self._append(records)

    def conflict(self, changes: Sequence[ConfigChange]) -> str:
        """Why these changes cannot be made together, in a sentence; empty when they can."""
        resources = self.limits.resources
        for type in (TOPIC, BROKER):
            of_type = [change for change in changes if change.entity.type == type]
            values = {change.entity.name: self._configs.outcome(change) for change in of_type}
            resources = resources.with_changes(type, values)
        return self._rules.conflict(resources)

    async def alter_configs(self, changes: Sequence[ConfigChange], who: Identity) -> None:
        """Store the changes; they are in force, here at least, when this returns.

        Raises Conflict where topics and brokers cannot have them together, and what alter() raises.
        """
        async with self._one_at_a_time:
            problem = self.conflict(changes)
            if problem:
                raise Conflict(problem)
            records: list[tuple[Place, Setting]] = []
            for number, change in enumerate(changes):
                self._configs.plan(change, writer(records, change, who, self._wall_ms()))
                if number % YIELD_EVERY == YIELD_EVERY - 1:
                    await asyncio.sleep(0)
            await self._append(records)

    # In force

    def _publish(
        self, clients: Sequence[tuple[QuotaEntity, str]], configs: Sequence[tuple[ConfigResource, str]]
    ) -> None:
        """Have the changes of these quotas in force."""
        limits = self.limits
        if clients:
            changes: dict[QuotaEntity, dict[str, float | None]] = {}
            for entity, values in self._clients.changes(clients).items():
                changes.setdefault(self._enforced(entity), {}).update(values)
            limits = limits.with_changes(changes)
        if configs:
            resources = limits.resources
            for type, texts in _by_type(self._configs.changes(configs)).items():
                resources = resources.with_changes(type, texts)
            limits = limits.with_resources(resources)
        if limits is not self.limits:
            self._take(limits)
        self._arm()

    def _replace(self) -> None:
        self._take(self._rebuild())
        self._arm()

    def _take(self, limits: Limits) -> None:
        if limits.resources is not self.limits.resources:
            problem = self._rules.conflict(limits.resources)
            if problem and problem != self._conflict:
                log.warning("quotas: the file and what was set with tools do not go together: %s", problem)
            self._conflict = problem
        self.limits = limits
        self._changed(limits)

    def _rebuild(self) -> Limits:
        limits = self._build({self._enforced(entity): values for entity, values in self.effective.items()})
        by_type = _by_type(self.configs)
        return limits.with_resources(Resources(by_type[TOPIC], by_type[BROKER]))

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
                now = "no limit" if value is None else f"now {value:g}"
                log.info("%s: the temporary %s is over; %s", entity, name, now)
        for resource, texts in self._configs.changes(configs).items():
            for name, text in texts.items():
                now = "it has none now" if text is None else f"now {text}"
                log.info("%s: the temporary %s is over; %s", resource, name, now)
        self._publish(clients, configs)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _by_type(
    configs: Mapping[ConfigResource, Mapping[str, Value]],
) -> dict[str, dict[str, Mapping[str, Value]]]:
    """The same by the resource's type, and then its name."""
    by_type: dict[str, dict[str, Mapping[str, Value]]] = {TOPIC: {}, BROKER: {}}
    for resource, values in configs.items():
        by_type[resource.type][resource.name] = values
    return by_type
