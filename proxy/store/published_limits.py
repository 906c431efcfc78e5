"""PublishedLimits: the snapshot of all limits, built from the effective values in the layers of the store."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import QuotaEntity
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import BROKER, TOPIC, ConfigResource
from proxy.store.enforced_entities import EnforcedEntities
from proxy.store.sources import Sources

log = logging.getLogger(__name__)

Value = TypeVar("Value", str, str | None)
Build = Callable[[Mapping[QuotaEntity, Mapping[str, float]]], Limits]


class PublishedLimits:
    """The current snapshot. Calls `changed` with each new one."""

    def __init__(
        self,
        build: Build,
        rules: ConfigRules,
        changed: Callable[[Limits], None],
        *,
        clients: Sources[QuotaEntity, float],
        configs: Sources[ConfigResource, str],
    ) -> None:
        self.build = build
        """Builds limits from quotas, under the settings of the file. A new one takes effect in rebuild()."""
        self._rules: Final = rules
        self._changed: Final = changed
        self._clients: Final = clients
        self._configs: Final = configs
        self._enforced: Final = EnforcedEntities()
        self._conflict = ""
        self.limits = self._built()
        """The current snapshot of all limits."""

    def move_host(self, host: QuotaEntity, address: str) -> list[tuple[QuotaEntity, str]]:
        """Set the address of a host name. Returns the places whose values may change by that."""
        before = self._enforced.set_address(host, address)
        if before is None:
            return []
        names = self._clients.effective.get(host, {})
        return [(entity, name) for name in names for entity in (before, host)]

    def update(
        self, clients: Sequence[tuple[QuotaEntity, str]], configs: Sequence[tuple[ConfigResource, str]]
    ) -> None:
        """Publish a snapshot with the current values at these places."""
        limits = self.limits
        if clients:
            changes: dict[QuotaEntity, dict[str, float | None]] = {}
            for entity, name in clients:
                enforced = self._enforced.of(entity)
                value = self._enforced.value(enforced, name, self._clients.effective)
                changes.setdefault(enforced, {})[name] = value
            limits = limits.with_changes(changes)
        if configs:
            resources = limits.resources
            for type, texts in _by_type(self._configs.changes(configs)).items():
                resources = resources.with_changes(type, texts)
            limits = limits.with_resources(resources)
        if limits is not self.limits:
            self._publish(limits)

    def rebuild(self) -> None:
        """Publish a snapshot that is built from all values."""
        self._publish(self._built())

    def _publish(self, limits: Limits) -> None:
        if limits.resources is not self.limits.resources:
            problem = self._rules.conflict(limits.resources)
            if problem and problem != self._conflict:
                log.warning("quotas: the file and the changes with tools conflict: %s", problem)
            self._conflict = problem
        self.limits = limits
        self._changed(limits)

    def _built(self) -> Limits:
        limits = self.build(self._enforced.all(self._clients.effective))
        resources = limits.resources
        for type, values in _by_type(self._configs.effective).items():
            resources = resources.with_changes(type, values)
        return limits.with_resources(resources)


def _by_type(
    configs: Mapping[ConfigResource, Mapping[str, Value]],
) -> dict[str, dict[str, Mapping[str, Value]]]:
    """The configs by the type of the resource, then by its name."""
    by_type: dict[str, dict[str, Mapping[str, Value]]] = {TOPIC: {}, BROKER: {}}
    for resource, values in configs.items():
        by_type[resource.type][resource.name] = values
    return by_type
