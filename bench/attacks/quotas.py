"""The quotas of the attackers, at the proxy and at the brokers."""

from collections.abc import Sequence
from typing import Final

from bench.attacks.attacker import address, client_id
from bench.attacks.catalogue import ATTACKS
from proxy.cli.quotas.changes import EntityAlteration
from proxy.cli.quotas.cluster.client import QuotaClient
from proxy.cli.quotas.entity import Entity
from proxy.quota.identity import DEFAULT_IN_YAML
from proxy.upstream.cluster_access import ClusterAccess

Quotas = list[tuple[Entity, dict[str, float]]]
ADDRESS_KEYS: Final = ("connection_creation_rate",)
"""The quotas of an address; those of clients have other keys."""
CONNECT_SECONDS: Final = 10.0


def key_and_value(text: str) -> tuple[str, float]:
    """Read `KEY=VALUE`. Raises ValueError."""
    key, _, value = text.partition("=")
    return key, float(value)


def attacker_quotas(settings: Sequence[tuple[str, float]]) -> Quotas:
    """Return the quotas of all attackers: each attack has a client id and an address of its own."""
    of_address = {key: value for key, value in settings if key in ADDRESS_KEYS}
    of_client = {key: value for key, value in settings if key not in ADDRESS_KEYS}
    quotas: Quotas = []
    for name in ATTACKS:
        if of_address:
            quotas.append(((("ip", address(name)),), of_address))
        if of_client:
            quotas.append(((("user", None), ("client-id", client_id(name))), of_client))
    return quotas


def in_yaml(quotas: Quotas) -> list[dict[str, object]]:
    """Return the quotas as the proxy's configuration has them."""
    return [
        {"entity": {kind: DEFAULT_IN_YAML if name is None else name for kind, name in entity}, **values}
        for entity, values in quotas
    ]


async def limit_attackers(port: int, quotas: Quotas) -> None:
    """Set the quotas at the broker with this port. Raises RuntimeError if Kafka rejects them."""
    entries = [EntityAlteration(entity, dict(values)) for entity, values in quotas]
    async with QuotaClient(ClusterAccess((("127.0.0.1", port),), CONNECT_SECONDS)) as client:
        async for _, rejections in client.alter(entries):
            if rejections:
                raise RuntimeError(f"Kafka rejects the attackers' quotas: {rejections}")
