"""A console on a store in memory, with quotas of the file and of tools."""

from collections.abc import Mapping, Sequence
from typing import Final

from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.resources import DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.relay.budgets.list_turns import ListTurns
from proxy.server.console.console import Console
from tests.support.quotas.memory_store import Wall, memory_store

PRODUCER: Final = "producer_byte_rate"
RATE: Final = "producer.byte.rate"
ALICE: Final = QuotaEntity("alice", None)
ORDERS: Final = ConfigResource(TOPIC, "orders")
CLIENTS: Final = {
    ALICE: {PRODUCER: 1000.0},
    QuotaEntity(DEFAULT, None): {PRODUCER: 500.0},
    QuotaEntity(None, None, "10.0.0.0/8"): {"connection_creation_rate": 20.0},
}
CONFIGS: Final = {
    ORDERS: {RATE: "100"},
    ConfigResource(TOPIC, DEFAULT_RESOURCE): {"consumer.byte.rate": "200"},
}


class Topics:
    """A cluster with the topic orders."""

    def __init__(self) -> None:
        self.known = [1]
        """The brokers that the proxy knows."""

    def nodes(self) -> list[int]:
        return self.known

    async def topic_ids(self, node_id: int, names: Sequence[str]) -> Mapping[str, bytes | None]:
        return {name: b"\x01" * 16 if name == ORDERS.name else None for name in names}


class SharedLimit:
    """Two instances that share one limit of alice."""

    KEY: Final = "18:producer_byte_rate5:alice0:0:0:-1/1"

    degraded: Final = True

    def ages(self) -> dict[str, float]:
        return {"proxy-a/1": 0.1, "proxy-b/2": 0.2}

    def hot_keys(self) -> list[str]:
        return [self.KEY]

    def shares(self, key: str) -> tuple[float, dict[str, float]]:
        return 1000.0, {"proxy-a/1": 250.0, "proxy-b/2": 750.0}


class ConsoleKit:
    """The console, its store, and the store's log."""

    def __init__(self, *, identifies_users: bool = True) -> None:
        self.wall = Wall()
        self.store, self.log = memory_store(CLIENTS, wall=self.wall, configs=CONFIGS)
        kinds = load_kinds()
        self.cluster = Topics()
        self.list_turns = ListTurns(65536)
        self.console = Console(
            store=self.store,
            keys=[key for kind in kinds for key in kind.keys],
            rules=ConfigRules(kinds),
            clusters=[self.cluster],
            overview=lambda: {
                "version": "1",
                "max_connections": 5,
                "listeners": [],
                "sharing": {"names": ["proxy-a"], "instances": 2, "lag_seconds": 0.1, "degraded": False},
                "workers": 1,
            },
            list_turns=self.list_turns,
            sharing=SharedLimit(),
            identifies_users=identifies_users,
        )

    def without_store(self) -> None:
        """As with `quotas.store: none`."""
        self.store.log = None
