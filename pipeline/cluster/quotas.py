"""Client quotas of a cluster, over Kafka's admin protocol, as `quota-proxy quotas` reads, compares and sets
them.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from pipeline.cluster.access import PLAINTEXT, BrokerAccess
from pipeline.errors import InputError, PipelineError
from proxy.cli.quotas.changes import QuotaChange, alterations, compare, summary
from proxy.cli.quotas.cluster.client import QuotaClient
from proxy.cli.quotas.cluster.config_client import ConfigClient
from proxy.cli.quotas.entity import Quotas, make_entity, show_entity, show_name
from proxy.cli.quotas.sending import send
from proxy.errors import QuotaProxyError
from proxy.quota.identity import DEFAULT_IN_YAML, QuotaEntity, parse_entity
from proxy.upstream.addresses import split_address
from proxy.upstream.cluster_access import ClusterAccess

Limits = Mapping[QuotaEntity, Mapping[str, float]]
_CONNECT_SECONDS: Final = 10.0
"""The timeout of connecting to one server, with TLS and login."""
__all__ = ["QuotaChange", "changes_to", "read_limits", "set_quotas", "show_name", "show_tenant", "summary"]


def read_limits(bootstrap: str, access: BrokerAccess = PLAINTEXT) -> dict[QuotaEntity, dict[str, float]]:
    """Return the lasting quotas of a server, a proxy or a broker. Raises InputError if the address is
    invalid, and PipelineError.
    """

    async def read() -> Quotas:
        async with QuotaClient(_cluster(bootstrap, access)) as client:
            return await client.describe_lasting()

    try:
        found = asyncio.run(read())
    except QuotaProxyError as error:
        raise PipelineError(f"cannot read the quotas of {bootstrap}: {error}") from error
    limits = {}
    for parts, values in found.items():
        try:
            entity = parse_entity({kind: DEFAULT_IN_YAML if name is None else name for kind, name in parts})
        except ValueError:
            # A kind that the proxy does not know: nothing here concerns it.
            continue
        limits[entity] = {key: float(value) for key, value in values.items()}
    return limits


def changes_to(have: Limits, want: Limits) -> list[QuotaChange]:
    """Return what `quotas diff --no-prune` shows: what is to be added and changed. Nothing is removed."""
    return compare(_quotas(have), _quotas(want), prune=frozenset())


def set_quotas(bootstrap: str, changes: Sequence[QuotaChange], access: BrokerAccess = PLAINTEXT) -> int:
    """Make the changes; return the number of entities that the server rejected, which it reports on standard
    error with the reason. Raises as read_limits().
    """

    async def change() -> int:
        cluster = _cluster(bootstrap, access)
        async with QuotaClient(cluster) as client:
            return await send(client, ConfigClient(client, cluster), alterations(changes))

    try:
        return asyncio.run(change())
    except QuotaProxyError as error:
        raise PipelineError(f"cannot set the quotas of {bootstrap}: {error}") from error


def show_tenant(user: str, client_id: str) -> str:
    """Write a tenant as an entity of `quotas diff`: quoted where a name is ambiguous."""
    return show_entity((("user", user), ("client-id", client_id)))


def _cluster(bootstrap: str, access: BrokerAccess) -> ClusterAccess:
    try:
        addresses = tuple(split_address(text.strip()) for text in bootstrap.split(","))
    except ValueError as error:
        raise InputError(f"--bootstrap {bootstrap}: expected HOST:PORT") from error
    return ClusterAccess(addresses, _CONNECT_SECONDS, access.of_this_process())


def _quotas(limits: Limits) -> Quotas:
    return {
        make_entity(
            (kind, None if name == DEFAULT_IN_YAML else name) for kind, name in entity.parts().items()
        ): {key: float(value) for key, value in values.items()}
        for entity, values in limits.items()
    }
