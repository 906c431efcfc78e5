"""A quota store without Kafka: its log is a list, and tests set its clock."""

from collections.abc import Callable, Mapping, Sequence

from proxy.quota.identity import QuotaEntity
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import ConfigResource
from proxy.store.layers import ClientLayer, ConfigLayer
from proxy.store.quota_records import Place, Setting
from proxy.store.quota_store import FileQuotas, QuotaStore
from tests.support.quotas.config_rules import CONFIG_RULES

Configs = Mapping[ConfigResource, Mapping[str, str]]


class Wall:
    """A wall clock, in ms since the epoch, that tests set."""

    def __init__(self, ms: int = 1_000_000) -> None:
        self.ms = ms

    def __call__(self) -> int:
        return self.ms


class MemoryLog:
    """Stands for the topic: appended changes are read back at once."""

    def __init__(self, store: QuotaStore) -> None:
        self.records: list[tuple[Place, Setting]] = []
        self.problem = ""
        self.failure: Exception | None = None
        """The error that append() raises; None: none."""
        self._store = store

    async def append(self, changes: Sequence[tuple[Place, Setting]]) -> None:
        if self.failure is not None:
            raise self.failure
        self.records += changes
        self._store.read(changes)


def file_of(quotas: Mapping[QuotaEntity, Mapping[str, float]], configs: Configs | None = None) -> FileQuotas:
    """A configuration file with these quotas and default settings."""
    config_layer = ConfigLayer()
    for resource, texts in (configs or {}).items():
        for name, text in texts.items():
            config_layer.set_lasting(resource, name, text)
    layer = ClientLayer()
    for entity, values in quotas.items():
        for name, value in values.items():
            layer.set_lasting(entity, name, value)
    return FileQuotas(Limits, layer=layer, configs=config_layer)


def memory_store(
    quotas: Mapping[QuotaEntity, Mapping[str, float]],
    changed: Callable[[Limits], None] = lambda limits: None,
    wall: Wall | None = None,
    configs: Configs | None = None,
) -> tuple[QuotaStore, MemoryLog]:
    """A store with the quotas and configs of a file, and its log. Its rules are CONFIG_RULES."""
    store = QuotaStore(file_of(quotas, configs), changed, wall or Wall(), CONFIG_RULES)
    log = MemoryLog(store)
    store.log = log
    return store, log
