"""A connection that ends with an error first sends the requests before it, which quotas have charged."""

import asyncio

import pytest

from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR
from tests.support.server.connections import new_connection
from tests.unit.proxy.server.connection.test_connection_ends import HEARTBEAT, RESPONSE, Host

NO_FRAME = b"\xff\xff\xff\xff"


class Broker(Host):
    """Keeps what it receives."""

    def __init__(self) -> None:
        super().__init__()
        self.received = b""
        self.end_seen = asyncio.Event()

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            self.received += data
            writer.write(RESPONSE)
        writer.close()
        self.end_seen.set()


async def sends_no_frame(host: Broker, connected: bool) -> None:
    """Send a request and, in the same segment, something that is no frame; `connected`: so is the broker."""
    loop = asyncio.get_running_loop()
    broker = await asyncio.start_server(host.respond, "127.0.0.1", 0)
    host.broker_port = broker.sockets[0].getsockname()[1]
    server = await loop.create_server(lambda: new_connection(host, loop), "127.0.0.1", 0)
    async with broker, server, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        if connected:
            writer.write(HEARTBEAT)
            assert await reader.readexactly(len(RESPONSE)) == RESPONSE
        writer.write(HEARTBEAT + NO_FRAME)
        await host.end_seen.wait()
        writer.close()
        while host.gone == 0:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("connected", [False, True])
def test_requests_before_the_error_reach_the_broker(connected: bool, loop: asyncio.AbstractEventLoop) -> None:
    host = Broker()
    loop.run_until_complete(sends_no_frame(host, connected))
    assert host.received == HEARTBEAT * (1 + connected)
    assert host.reasons == [CLIENT_PROTOCOL_ERROR]
