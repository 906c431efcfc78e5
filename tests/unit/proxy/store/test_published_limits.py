"""PublishedLimits: a snapshot per change, with the lowest value of an address; or one that is built anew."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from proxy.quota.identity import QuotaEntity
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.store.layers import Layer
from proxy.store.published_limits import PublishedLimits
from proxy.store.sources import Sources
from tests.support.quotas.config_rules import CONFIG_RULES

RATE, IP_RATE = "producer_byte_rate", "connection_creation_rate"
PART, TOTAL = "bytes.in.per.sec.threshold", "total.bytes.in.per.sec.threshold"
ALICE = QuotaEntity("alice", None)
HOST, ADDRESS = QuotaEntity(None, None, "host"), QuotaEntity(None, None, "10.0.0.1")
ORDERS, EVERY_BROKER = ConfigResource(TOPIC, "orders"), ConfigResource(BROKER, DEFAULT_RESOURCE)


@dataclass
class Kit:
    """Layers without values at first, and the snapshots that they led to."""

    clients: Sources[QuotaEntity, float] = field(default_factory=lambda: Sources(Layer(), 0))
    configs: Sources[ConfigResource, str] = field(default_factory=lambda: Sources(Layer(), 0))
    given: list[Limits] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.published = PublishedLimits(
            Limits, CONFIG_RULES, self.given.append, clients=self.clients, configs=self.configs
        )

    def limit(self, entity: QuotaEntity, name: str, value: float) -> None:
        self.clients.layers.tools.set_lasting(entity, name, value)
        self.clients.layers.refresh(entity, name, 0)
        self.published.update([(entity, name)], [])

    def configure(self, resource: ConfigResource, name: str, value: str) -> None:
        self.configs.layers.tools.set_lasting(resource, name, value)
        self.configs.layers.refresh(resource, name, 0)
        self.published.update([], [(resource, name)])


def test_each_change_is_one_snapshot() -> None:
    kit = Kit()
    kit.limit(ALICE, RATE, 5.0)
    kit.configure(ORDERS, PART, "7")
    first, second = kit.given
    assert first.limit(RATE, "alice", "") == second.limit(RATE, "alice", "") == 5.0
    assert not first.resources.configured(TOPIC, PART)
    assert second.resources.configured(TOPIC, PART) == {"orders": "7"}
    assert kit.published.limits is second
    kit.published.update([], [])
    assert len(kit.given) == 2


def test_a_host_that_moves_takes_its_quota_along() -> None:
    kit = Kit()
    kit.limit(HOST, IP_RATE, 5.0)
    kit.limit(ADDRESS, IP_RATE, 3.0)
    for address, there in (("10.0.0.1", 3.0), ("10.0.0.2", 5.0)):
        kit.published.update(kit.published.move_host(HOST, address), [])
        assert kit.published.limits.ip_limit(IP_RATE, address) == there
    assert kit.published.move_host(HOST, "10.0.0.2") == []


def test_what_is_built_anew_has_all_values_and_the_settings_of_the_file() -> None:
    kit = Kit()
    kit.limit(ALICE, RATE, 5.0)
    kit.configure(ORDERS, PART, "7")
    built: list[Mapping[QuotaEntity, Mapping[str, float]]] = []

    def build(quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> Limits:
        built.append(quotas)
        return Limits(quotas)

    kit.published.build = build
    kit.published.rebuild()
    assert built == [{ALICE: {RATE: 5.0}}]
    assert kit.given[-1].resources.configured(TOPIC, PART) == {"orders": "7"}


def test_a_conflict_is_logged_once_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    kit = Kit()
    kit.configure(EVERY_BROKER, TOTAL, "10")
    kit.configure(ORDERS, PART, "20")
    kit.published.rebuild()
    assert len(caplog.records) == 1
    kit.configure(ORDERS, PART, "10")
    kit.configure(ORDERS, PART, "20")
    assert len(caplog.records) == 2
