"""RelaySession: a list goes to the broker as soon as it is its turn."""

import asyncio
import socket
from typing import Any, cast

from proxy.relay.budgets.list_turns import LIST_BYTES, LONGEST_SECONDS, ListTurns
from proxy.relay.counters.traffic import Traffic
from proxy.relay.relay import Relay
from proxy.server.connection.connection import Connection
from tests.support.messages.exchanges import opaque, responded
from tests.support.messages.kio_messages import Ports
from tests.support.server.client_transport import ClientTransport
from tests.support.stories.playbook import drive, engine

A_LIST = opaque(1, body=bytes(LIST_BYTES))


class Host:
    """Takes connections of one client; their brokers are reached at once."""

    def __init__(self) -> None:
        self.turns = ListTurns(1, asyncio.get_running_loop().call_soon)
        self.brokers: list[Any] = []
        self.ended_with: list[str] = []
        self.ended_one = asyncio.Event()

    def opened(self, connection: Connection, address: str) -> Relay:
        return drive(engine({}), Ports(), Traffic(), list_turns=self.turns).relay

    def start_connecting(self, connection: Connection, broker: Any) -> None:
        self.brokers.append(broker)
        broker.connection_made(cast("asyncio.BaseTransport", ClientTransport()))

    def ended(self, connection: Connection, reason: str) -> None:
        self.ended_with.append(reason)
        self.ended_one.set()

    def failed(self, connection: Connection, error: Exception) -> None:
        self.ended_with.append(str(error))

    def connect(self, transport: ClientTransport | None = None) -> Connection:
        connection = Connection(self, 1, asyncio.get_running_loop())  # type: ignore[arg-type]
        client = ClientTransport() if transport is None else transport
        connection.connection_made(cast("asyncio.BaseTransport", client))
        return connection


async def some_turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_it_goes_in_the_next_turn_of_the_event_loop() -> None:
    host = Host()
    one, other = host.connect(), host.connect()
    one.data_received(A_LIST)
    other.data_received(A_LIST)
    assert len(host.brokers) == 1
    started = asyncio.get_running_loop().time()
    host.brokers[0].data_received(responded(1))
    await some_turns()
    assert len(host.brokers) == 2
    assert asyncio.get_running_loop().time() - started < LONGEST_SECONDS


async def test_that_of_a_client_that_has_gone_is_dropped() -> None:
    class Gone(ClientTransport):
        def get_extra_info(self, name: str) -> Any:
            return broken if name == "socket" else super().get_extra_info(name)

    host = Host()
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        broken, _ = server.accept()
        with broken:
            one, gone, other = host.connect(), host.connect(Gone()), host.connect()
            for connection in (one, gone, other):
                connection.data_received(A_LIST)
            client.close()
            host.brokers[0].data_received(responded(1))
            await some_turns()
    assert len(host.brokers) == 2
    assert other.session.relay is not None
    assert not other.session.relay.status.waits_for_turn
    assert gone.session.over
    assert not one.session.over


async def test_that_of_a_client_that_has_gone_is_dropped_before_it_is_paid() -> None:
    """No response of the broker ends this wait."""
    host = Host()
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        broken, _ = server.accept()

        class Gone(ClientTransport):
            def get_extra_info(self, name: str) -> Any:
                return broken if name == "socket" else super().get_extra_info(name)

        with broken:
            gone = host.connect(Gone())
            relay = gone.session.relay
            assert relay is not None
            key = (-1, relay.status.client_key)
            host.turns.debts.add(key, 0.05, 1.0, asyncio.get_running_loop().time())
            gone.data_received(A_LIST)
            assert relay.status.waits_for_turn
            client.close()
            async with asyncio.timeout(30):
                await host.ended_one.wait()
    assert gone.session.over
    assert not host.brokers
