"""Drain.poll(): the connection of an active client ends when its next request has arrived, and the
request stays unread.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from proxy.relay.close_reasons import DRAINED
from proxy.server.connection.connection import Connection
from proxy.server.connection.drain import ACTIVE_SECONDS, REQUEST_CALLS
from proxy.server.connection.hang_up import has_sent
from tests.support.messages.exchanges import fetch
from tests.support.server.connections import new_connection
from tests.support.waiting import reached
from tests.unit.proxy.server.connection.test_connection_ends import HEARTBEAT, RESPONSE, Host


class Served:
    """A client's connection after an exchange, and its host."""

    def __init__(self, host: Host, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.host = host
        self.reader = reader
        self.writer = writer
        [self.connection] = host.open
        self.now = self.connection.session.heard_at

    @property
    def connection_ended(self) -> bool:
        return self.host.reasons == [DRAINED]

    def drain(self, after: float = 0.0) -> None:
        """Poll the connection this long after the exchange."""
        self.connection.drain(self.now + after)

    def sent(self, connection: Connection) -> bool:
        """Whether bytes wait in the proxy's socket."""
        client = connection.session.client
        return client is not None and has_sent(client)


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    loop = asyncio.get_running_loop()
    host = Host(answered=1)
    broker = await asyncio.start_server(host.respond, "127.0.0.1", 0)
    host.broker_port = broker.sockets[0].getsockname()[1]
    server = await loop.create_server(lambda: new_connection(host, loop), "127.0.0.1", 0)
    async with broker, server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        writer.write(HEARTBEAT)
        assert await reader.readexactly(len(RESPONSE)) == RESPONSE
        yield Served(host, reader, writer)
        writer.close()
        await reached(lambda: host.gone == 1, "the end of both sides")


async def test_the_next_request_stays_unread() -> None:
    async with served() as client:
        client.drain()
        assert not client.connection_ended
        client.writer.write(HEARTBEAT)
        await reached(lambda: client.sent(client.connection), "the request")
        client.drain()
        assert client.connection_ended
        assert await client.reader.read() == b"", "no response"


async def test_a_client_that_sends_nothing_is_not_awaited_for_long() -> None:
    async with served() as client:
        for _ in range(REQUEST_CALLS):
            client.drain()
            assert not client.connection_ended
        client.drain()
        assert client.connection_ended


async def test_an_idle_client_is_not_awaited() -> None:
    async with served() as client:
        client.drain(after=ACTIVE_SECONDS)
        assert client.connection_ended


async def test_a_client_with_an_outstanding_request_that_needs_no_response_is_not_awaited() -> None:
    """A fetch waits for records at the broker, and is sent again."""
    async with served() as client:
        client.connection.data_received(fetch(8, version=12))
        client.drain()
        assert client.connection_ended


async def test_polls_after_the_end_do_nothing() -> None:
    async with served() as client:
        for _ in range(2):
            client.drain(after=ACTIVE_SECONDS)
            assert client.connection_ended
    client.drain()
    assert client.connection_ended
