"""Admin requests, each on a connection of its own, to a broker or a proxy."""

from typing import Any

from kio.schema.errors import ErrorCode

from tests.support.kafka.raw_client import RawClient
from tests.support.messages import client_quotas, configs
from tests.support.messages.client_quotas import Entity, Quotas
from tests.support.messages.configs import Resource, Shown


def ask(port: int, request: Any, client_id: str = "raw") -> Any:
    """Send one request, and return the response."""
    with RawClient(port, client_id) as client:
        return client.ask(request)


def alter(port: int, entity: Entity, **values: float | None) -> ErrorCode:
    """Change an entity's client quotas; return the entry's error code."""
    request = client_quotas.alter_request((list(entity.items()), list(values.items())))
    [result] = ask(port, request, "admin").entries
    code: ErrorCode = result.error_code
    return code


def describe(port: int, *components: tuple[str, int, str | None], strict: bool = False) -> Quotas:
    """Return the client quotas that match these filters."""
    request = client_quotas.describe_request(*components, strict=strict)
    return client_quotas.described(ask(port, request, "admin"))


def shown_of(port: int, resource: Resource, *names: str) -> dict[str, Shown]:
    """Return the configs of a resource: those with these names, or all."""
    request = configs.describe_request([(resource, names or None)])
    [found] = configs.described(ask(port, request)).values()
    assert not isinstance(found, ErrorCode), found
    return found
