"""A connection to the bootstrap port whose broker cannot be reached goes to another broker."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from proxy.errors import UpstreamUnavailable
from proxy.quota.engine import QuotaEngine
from proxy.relay.close_reasons import RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.relay import Relay
from proxy.relay.settings import RelaySettings
from proxy.server.connection.connection import Connection
from tests.support.messages.kio_messages import Ports, request_frame
from tests.support.messages.requests import api_versions

REQUEST = request_frame(api_versions(), 7)
LATER = request_frame(api_versions(), 8)
DEAD, ALIVE = 1, 2


class Host:
    """Reaches the broker ALIVE alone, which echoes."""

    def __init__(self, brokers: list[int], broker_port: int) -> None:
        self.brokers = brokers
        self.tried: list[int | None] = []
        self.failures: list[str] = []
        self.ended_with: list[str] = []
        self.keep = False
        self._broker_port = broker_port
        self._tasks: list[asyncio.Task[None]] = []

    def _relay(self) -> Relay:
        return Relay(
            QuotaEngine([]),
            Ports(),
            Traffic(),
            RelaySettings(max_frame_bytes=1 << 20),
            principal="user",
            client_address="127.0.0.1",
        )

    def opened(self, connection: Connection, address: str) -> Relay:
        connection.node_id = DEAD
        if self.keep:
            connection.session.keep_broker()
        return self._relay()

    def reroute(self, connection: Connection) -> Relay | None:
        if not self.brokers:
            return None
        connection.node_id = self.brokers.pop(0)
        return self._relay()

    async def connect(self, connection: Connection, broker: asyncio.Protocol) -> None:
        self.tried.append(connection.node_id)
        if connection.node_id != ALIVE:
            raise UpstreamUnavailable(f"broker {connection.node_id} is gone")
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: broker, "127.0.0.1", self._broker_port)

    def start_connecting(self, connection: Connection, broker: asyncio.Protocol) -> None:
        loop = asyncio.get_running_loop()
        self._tasks.append(loop.create_task(connection.reach_broker(broker)))

    def failed(self, connection: Connection, error: RelayError) -> None:
        self.failures.append(error.reason)

    def ended(self, connection: Connection, reason: str) -> None:
        self.ended_with.append(reason)

    def left(self, connection: Connection) -> None:
        pass


async def outcome(brokers: list[int], *, keep: bool = False) -> tuple[Host, bytes]:
    """What the broker ALIVE received of a client that sends two requests one after the other."""
    received = asyncio.Queue[bytes]()

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1000):
                received.put_nowait(data)
        writer.close()
        received.put_nowait(b"")

    behind = await asyncio.start_server(broker, "127.0.0.1", 0)
    host = Host(brokers, behind.sockets[0].getsockname()[1])
    loop = asyncio.get_running_loop()
    connections: list[Connection] = []

    def make() -> Any:
        typed: Any = host
        connections.append(Connection(typed, None, loop))
        if keep:
            host.keep = True
        return connections[-1]

    front = await loop.create_server(make, "127.0.0.1", 0)
    data = b""
    async with behind, front, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection(*front.sockets[0].getsockname())
        writer.write(REQUEST)
        await writer.drain()
        if brokers and not keep:
            while len(data) < len(REQUEST):
                data += await received.get()
            writer.write(LATER)
            while len(data) < len(REQUEST + LATER):
                data += await received.get()
        else:
            assert await reader.read() == b""
        connections[0].abort()
        writer.close()
        if data:
            assert await received.get() == b""
    return host, data


async def test_it_goes_to_the_next_broker_with_all_that_the_client_has_sent() -> None:
    host, received = await outcome([3, ALIVE])
    assert host.tried == [DEAD, 3, ALIVE]
    assert received == REQUEST + LATER
    assert host.failures == []


async def test_it_ends_when_no_broker_is_left() -> None:
    host, _ = await outcome([])
    assert host.tried == [DEAD]
    assert host.failures == ["broker_unavailable"]


@pytest.mark.parametrize("brokers", [[ALIVE]])
async def test_a_client_that_wants_this_broker_gets_no_other(brokers: list[int]) -> None:
    host, _ = await outcome(brokers, keep=True)
    assert host.tried == [DEAD]
    assert host.failures == ["broker_unavailable"]
