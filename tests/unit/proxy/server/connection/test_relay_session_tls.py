"""Messages that leave together over TLS leave in one record; without TLS, the socket gets their pieces."""

import asyncio
from typing import Any, cast

import pytest

from proxy.relay.relay import Relay
from proxy.server.connection.connection import Connection
from proxy.wire.api_keys import API_VERSIONS
from tests.support.messages.exchanges import opaque, produce, produced
from tests.support.stories.playbook import new_relay
from tests.unit.proxy.server.connection.broker import test_side


class Host(test_side.Host):
    """Keeps the protocol that a broker's socket gets."""

    def __init__(self) -> None:
        super().__init__()
        self.broker: Any = None

    def opened(self, connection: Connection, address: str) -> Relay:
        return new_relay().relay

    def start_connecting(self, connection: Connection, broker: asyncio.Protocol) -> None:
        self.broker = broker


class Transport(test_side.Transport):
    """Keeps what each call writes."""

    def __init__(self, tls: bool) -> None:
        super().__init__(tls)
        self.writes: list[list[bytes]] = []

    def writelines(self, pieces: list[bytes]) -> None:
        self.writes.append(list(pieces))


FIRST, SECOND, THIRD = [produce(number, client_id="client") for number in (1, 2, 4)]
UNSUPPORTED = opaque(3, API_VERSIONS)
"""The proxy answers it, so the requests before it and behind it are two pieces."""


@pytest.mark.parametrize("client_tls", [False, True])
@pytest.mark.parametrize("broker_tls", [False, True])
async def test_messages_that_leave_together(client_tls: bool, broker_tls: bool) -> None:
    host, client, broker = Host(), Transport(client_tls), Transport(broker_tls)
    connection = Connection(cast("Any", host), 1, asyncio.get_running_loop())
    connection.connection_made(cast("Any", client))
    connection.data_received(FIRST)
    host.broker.connection_made(broker)
    connection.data_received(SECOND + UNSUPPORTED + THIRD)
    host.broker.data_received(b"".join([produced(1), produced(2), produced(4)]))
    assert broker.writes[1] == ([SECOND + THIRD] if broker_tls else [SECOND, THIRD])
    (written,) = client.writes
    assert len(written) == (1 if client_tls else 3)
    whole = b"".join(written)
    assert whole.startswith(produced(1) + produced(2))
    assert whole.endswith(produced(4))
    connection.abort()
