"""Who may read and change quotas, according to the broker and to the configuration."""

import asyncio
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.authority import Authority, ClientRights, Rights
from proxy.quota.identity import Identity
from proxy.relay.close_reasons import RelayError
from proxy.security.settings import Changes
from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import read_frame, request_type, response_frame, response_type
from tests.support.messages.mutations import NO_TIME

ACLS, DESCRIBE, ALTER = 29, 48, 49
NONE, REJECTED, NO_AUTHORIZER = (
    ErrorCode.none,
    ErrorCode.cluster_authorization_failed,
    ErrorCode.security_disabled,
)


class Broker:
    """Responds to each API with an error code."""

    def __init__(self, acls: ErrorCode = REJECTED, quotas: ErrorCode = NONE) -> None:
        self.asked: list[Any] = []
        self._codes = {ACLS: acls, DESCRIBE: quotas, ALTER: quotas}

    async def ask(self, frame: bytes) -> bytes:
        header = read_request_header(Reader([frame], LENGTH_SIZE))
        assert (header.correlation_id, header.raw_client_id) == (7, b"tool")
        request = read_frame(request_type(header.api_key, header.api_version), frame)
        self.asked.append(request)
        response = self._respond(header.api_key, header.api_version, request)
        return response_frame(response, 7)[LENGTH_SIZE:]

    def _respond(self, api_key: int, version: int, request: Any) -> Any:
        schema = response_type(api_key, version)
        code = self._codes[api_key]
        if api_key == ACLS:
            return schema(error_code=code, error_message=None, resources=(), throttle_time=NO_TIME)
        if api_key == DESCRIBE:
            return schema(error_code=code, error_message=None, entries=None, throttle_time=NO_TIME)
        assert request.validate_only
        entry = schema.__annotations__["entries"].__args__[0]
        return schema(entries=(entry(error_code=code, error_message=None, entity=()),), throttle_time=NO_TIME)


def rights(
    broker: Broker,
    *,
    user: str = "alice",
    address: str = "10.0.0.7",
    known: bool = True,
    stated: bool = False,
    **settings: Any,
) -> Rights:
    authority = Authority(Changes(**settings))
    who = Identity(user, "tool", address)
    return ClientRights(authority, broker.ask, who, 7, known_to_broker=known, address_stated=stated)


def granted(found: Rights) -> tuple[bool, bool, bool, bool]:
    async def ask() -> tuple[bool, bool, bool, bool]:
        return (
            await found.may_describe(),
            await found.may_alter(),
            await found.may_as_judged(),
            found.sees_configs,
        )

    return asyncio.run(ask())


@pytest.mark.parametrize("acls", [NONE, REJECTED])
def test_the_broker_decides(acls: ErrorCode) -> None:
    assert granted(rights(Broker(acls, NONE))) == (True, True, True, True)
    assert granted(rights(Broker(acls, REJECTED))) == (False, False, True, True)


def test_the_configuration_does_not_overrule_the_broker() -> None:
    found = rights(Broker(REJECTED, REJECTED), admins=("alice",), without_authorizer="everybody")
    assert granted(found) == (False, False, True, True)


def test_other_errors_do_not_deny_rights() -> None:
    assert granted(rights(Broker(REJECTED, ErrorCode.invalid_request)))[:2] == (True, True)


@pytest.mark.parametrize(("entries", "says"), [(b"\0\0\0\0", None), (b"\xff" * 4, "a null array")])
def test_a_response_without_entries_gives_no_rights(entries: bytes, says: str | None) -> None:
    """The response to AlterClientQuotas has an entry for each entity of the request."""

    class Empty(Broker):
        async def ask(self, frame: bytes) -> bytes:
            response = await super().ask(frame)
            return response if len(self.asked) == 1 else response[:4] + bytes(4) + entries

    asking = rights(Empty()).may_alter()
    if says is None:
        assert not asyncio.run(asking)
    else:
        with pytest.raises(RelayError, match=says):
            asyncio.run(asking)


@pytest.mark.parametrize(
    ("settings", "user", "address", "may"),
    [
        ({}, "alice", "10.0.0.7", False),
        ({}, "alice", "127.0.0.1", True),
        ({}, "alice", "::1", True),
        ({}, "alice", "::ffff:127.0.0.1", True),
        ({}, "alice", "?", False),
        ({"without_authorizer": "nobody"}, "alice", "127.0.0.1", False),
        ({"without_authorizer": "everybody"}, "alice", "10.0.0.7", True),
        ({"without_authorizer": "nobody", "admins": ("alice",)}, "alice", "10.0.0.7", True),
        ({"without_authorizer": "nobody", "admins": ("alice",)}, "bob", "127.0.0.1", False),
    ],
)
def test_without_an_authorizer(settings: dict[str, Any], user: str, address: str, may: bool) -> None:
    broker = Broker(NO_AUTHORIZER)
    assert granted(rights(broker, user=user, address=address, **settings))[:3] == (may, may, may)


@pytest.mark.parametrize(
    ("settings", "may"),
    [({}, False), ({"without_authorizer": "everybody"}, True), ({"admins": ("alice",)}, True)],
)
def test_a_stated_address_is_not_on_this_host(settings: dict[str, Any], may: bool) -> None:
    """A load balancer's own clients may have its loopback address, and a header can state any."""
    broker = Broker(NO_AUTHORIZER)
    assert granted(rights(broker, address="127.0.0.1", stated=True, **settings))[:3] == (may, may, may)


@pytest.mark.parametrize(("admins", "may"), [((), False), (("bob",), False), (("alice",), True)])
def test_client_whose_principal_the_broker_does_not_see(admins: tuple[str, ...], may: bool) -> None:
    broker = Broker(NONE, NONE)
    found = rights(broker, known=False, address="127.0.0.1", admins=admins, without_authorizer="everybody")
    assert granted(found) == (may, may, may, may)
    assert broker.asked == []


def test_changed_settings_apply_at_once() -> None:
    authority = Authority(Changes())
    found = ClientRights(authority, Broker().ask, Identity("alice", "", "::1"), 7, known_to_broker=False)
    assert not found.sees_configs
    authority.settings = Changes(admins=("alice",))
    assert found.sees_configs


def test_malformed_response() -> None:
    async def ask(frame: bytes) -> bytes:
        return b"\0\0\0\7\0"

    found = ClientRights(Authority(Changes()), ask, Identity("a", "tool", "::1"), 7, known_to_broker=True)
    with pytest.raises(RelayError, match="DescribeAclsResponse v1"):
        asyncio.run(found.may_alter())
