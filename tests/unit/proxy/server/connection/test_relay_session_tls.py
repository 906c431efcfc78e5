"""Messages that leave together over TLS leave in one record; without TLS, the socket gets each one."""

import asyncio
from typing import Any, cast

import pytest

from proxy.relay.relay import Relay
from proxy.server.connection.connection import Connection
from tests.support.messages.exchanges import produce, produced
from tests.support.stories.playbook import new_relay
from tests.unit.proxy.server.connection import test_broker_side


class Host(test_broker_side.Host):
    """Keeps the protocol that a broker's socket gets."""

    def __init__(self) -> None:
        super().__init__()
        self.broker: Any = None

    def opened(self, connection: Connection, address: str) -> Relay:
        return new_relay().relay

    def start_connecting(self, connection: Connection, broker: asyncio.Protocol) -> None:
        self.broker = broker


class Transport(test_broker_side.Transport):
    """Keeps what each call writes."""

    def __init__(self, tls: bool) -> None:
        super().__init__(tls)
        self.writes: list[list[bytes]] = []

    def writelines(self, pieces: list[bytes]) -> None:
        self.writes.append(list(pieces))


REQUESTS = [produce(number, client_id="c") for number in (1, 2, 3)]
RESPONSES = [produced(number) for number in (1, 2, 3)]


@pytest.mark.parametrize("client_tls", [False, True])
@pytest.mark.parametrize("broker_tls", [False, True])
async def test_messages_that_leave_together(client_tls: bool, broker_tls: bool) -> None:
    host, client, broker = Host(), Transport(client_tls), Transport(broker_tls)
    connection = Connection(cast("Any", host), 1, asyncio.get_running_loop())
    connection.connection_made(cast("Any", client))
    connection.data_received(REQUESTS[0])
    host.broker.connection_made(broker)
    connection.data_received(b"".join(REQUESTS[1:]))
    host.broker.data_received(b"".join(RESPONSES))
    assert broker.writes[1] == ([b"".join(REQUESTS[1:])] if broker_tls else REQUESTS[1:])
    assert client.writes == [[b"".join(RESPONSES)] if client_tls else RESPONSES]
    connection.abort()
