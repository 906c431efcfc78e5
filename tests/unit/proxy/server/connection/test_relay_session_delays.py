"""A client that cannot be told to wait: its responses stay at the broker, and not in the proxy's memory."""

import asyncio
import time
from typing import Final, cast

from proxy.relay.close_reasons import RelayError
from proxy.relay.relay import Relay
from proxy.server.connection.connection import Connection
from tests.support.messages.exchanges import TOPIC
from tests.support.messages.old_messages import fetch_request, fetch_response
from tests.support.server.connections import new_connection
from tests.support.stories.playbook import EVERYONE, new_relay

RESPONSES: Final = 64
SIZE: Final = 1_000_000
WAIT: Final = 0.5
QUOTA: Final = {EVERYONE: {"consumer_byte_rate": SIZE / (1 + WAIT)}}
"""The first response waits for so long."""
BUFFERED: Final = 24_000_000
"""More than sockets on loopback hold by themselves."""


class Broker(asyncio.Protocol):
    """Responds to every fetch of Fetch v0 before it has read any."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        assert self.transport is not None
        for number in range(RESPONSES):
            self.transport.write(fetch_response(0, number, {TOPIC: {0: bytes(SIZE)}}))

    @property
    def unsent(self) -> int:
        assert self.transport is not None
        return self.transport.get_write_buffer_size()


class ConnectionHost:
    def __init__(self, loop: asyncio.AbstractEventLoop, port: int) -> None:
        self._loop = loop
        self._port = port
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections: list[Connection] = []
        self.over = asyncio.Event()

    def opened(self, connection: Connection, address: str) -> Relay:
        self.connections.append(connection)
        return new_relay(QUOTA).relay

    def start_connecting(self, connection: Connection, broker: asyncio.Protocol) -> None:
        self._tasks.add(self._loop.create_task(connection.reach_broker(broker)))

    async def connect(self, connection: Connection, broker: asyncio.Protocol) -> None:
        await self._loop.create_connection(lambda: broker, "127.0.0.1", self._port)

    def failed(self, connection: Connection, error: RelayError) -> None:
        pass

    def ended(self, connection: Connection, reason: str) -> None:
        pass

    def left(self, connection: Connection) -> None:
        self.over.set()


def test_delayed_responses_stay_at_the_broker(loop: asyncio.AbstractEventLoop) -> None:
    async def story() -> tuple[float, int]:
        broker = Broker()
        brokers = await loop.create_server(lambda: broker, "127.0.0.1", 0)
        owner = ConnectionHost(loop, brokers.sockets[0].getsockname()[1])
        server = await loop.create_server(lambda: new_connection(owner, loop), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        started = time.monotonic()
        for number in range(RESPONSES):
            writer.write(fetch_request(0, number, {TOPIC: {0: SIZE}}))
        try:
            await reader.readexactly(4)
            return time.monotonic() - started, broker.unsent
        finally:
            if broker.transport is not None:
                broker.transport.abort()
            writer.transport.abort()
            owner.connections[0].abort()
            server.close()
            brokers.close()
            await asyncio.wait_for(owner.over.wait(), 10)

    waited, unsent = loop.run_until_complete(asyncio.wait_for(story(), 30))
    assert waited >= WAIT * 0.9
    assert unsent > RESPONSES * SIZE - BUFFERED
