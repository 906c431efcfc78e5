"""After any history of changes, reloads and expiries, the limits are those of a proxy that starts now."""

import random
from typing import Final

import pytest

from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.store.layers import Temporary
from proxy.store.quota_records import Place, Setting
from proxy.store.quota_store import ClientQuotaAlteration, ConfigChange, Conflict, FileQuotas, QuotaStore
from tests.support.quotas.config_rules import CONFIG_RULES
from tests.support.quotas.memory_store import Wall, file_of, memory_store

STEPS: Final = 60
RATE, IP_RATE = "producer_byte_rate", "connection_creation_rate"
CONFIG: Final = {TOPIC: "producer.byte.rate", BROKER: "total.bytes.in.per.sec.threshold"}
CLIENTS: Final = [
    QuotaEntity("a", None),
    QuotaEntity("", None),
    QuotaEntity("a", "c"),
    QuotaEntity(None, ""),
    QuotaEntity(None, "x" * 300),
]
IPS: Final = [QuotaEntity(None, None, name) for name in ("10.0.0.1", "10.0.0.0/8", "")]
"""As the file has them."""
HOST: Final = QuotaEntity(None, None, "h.example")
SPELLINGS: Final = [QuotaEntity(None, None, name) for name in ("::ffff:10.0.0.1", "::ffff:10.0.0.0/104")]
RESOURCES: Final = [
    ConfigResource(TOPIC, "t"),
    ConfigResource(TOPIC, DEFAULT_RESOURCE),
    ConfigResource(BROKER, "1"),
]
WHO: Final = Identity("admin", "tool", "10.0.0.9")


class History:
    """A store, and random events."""

    def __init__(self, seed: int) -> None:
        self._choice = random.Random(seed)
        self._wall = Wall()
        self.store, self._log = memory_store({}, wall=self._wall)

    async def step(self) -> None:
        events = [self._alter, self._alter, self._alter_config, self._wait, self._reload, self._read_anew]
        await self._choice.choice(events)()
        self.store._expire()

    def _value(self) -> float | None:
        return None if self._choice.random() < 0.4 else float(self._choice.randrange(1, 9))

    def _expiry(self) -> int | None:
        return self._wall.ms + self._choice.randrange(1, 100) if self._choice.random() < 0.3 else None

    async def _alter(self) -> None:
        entity = self._choice.choice([*CLIENTS, *IPS, *SPELLINGS, HOST])
        change = ClientQuotaAlteration(
            entity,
            {RATE if entity.ip is None else IP_RATE: self._value()},
            self._expiry(),
            address=self._choice.choice(["10.0.0.1", "10.0.0.2"]) if entity == HOST else None,
        )
        await self.store.alter([change], WHO)

    async def _alter_config(self) -> None:
        resource, value = self._choice.choice(RESOURCES), self._value()
        expiry = self._expiry()
        anew = resource.type == TOPIC and expiry is None and self._choice.random() < 0.2
        text = None if value is None else f"{value:.0f}"
        try:
            change = ConfigChange(resource, {CONFIG[resource.type]: text}, expiry, anew=anew)
            await self.store.alter_configs([change], WHO)
        except Conflict:
            pass

    async def _wait(self) -> None:
        self._wall.ms += self._choice.randrange(60)

    async def _reload(self) -> None:
        file = file_of({}, {resource: {CONFIG[resource.type]: "5"} for resource in RESOURCES[:2]})
        for entity in self._choice.sample([*CLIENTS, *IPS], 4):
            key = RATE if entity.ip is None else IP_RATE
            file.layer.set_lasting(entity, key, float(self._choice.randrange(1, 9)))
            until = self._wall.ms + self._choice.randrange(-50, 200)
            file.layer.set_temporary(entity, key, Temporary(float(self._choice.randrange(1, 9)), until))
        file.settings = self._choice.choice("ab")
        await self.store.use_file(file)

    async def _read_anew(self) -> None:
        self._read_into(self.store)

    def _read_into(self, store: QuotaStore) -> None:
        """Read the log as it is after compaction."""
        left: dict[Place, Setting] = {}
        for place, setting in self._log.records:
            left.pop(place, None)
            left[place] = setting
        store.read_anew()
        store.read(list(left.items()))
        store.read_to_end()

    def started_now(self) -> QuotaStore:
        """A store that reads the same file and the same log."""
        file = FileQuotas(
            Limits, layer=self.store._clients.layers.file, configs=self.store._configs.layers.file
        )
        store = QuotaStore(file, lambda limits: None, self._wall, CONFIG_RULES)
        self._read_into(store)
        store.close()
        return store


def configured(limits: Limits) -> tuple[object, ...]:
    """What the limits have, without resources that have lost their configs."""
    resources = (limits.resources.topics, limits.resources.brokers)
    shown = [{name: values for name, values in named.items() if values} for named in resources]
    return limits.configured(RATE), limits.configured(IP_RATE), *shown


@pytest.mark.parametrize("seed", range(40))
async def test_limits_after_a_history_are_those_after_a_restart(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        await history.step()
        assert configured(history.store.limits) == configured(history.started_now().limits)
    history.store.close()
