"""Quotas by topic take back what the broker has not appended: its response after the client has gone says so,
or it closes the connection instead.
"""

import asyncio
import socket
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE
from proxy.quota.limits.resources import Resources
from proxy.relay.counters.traffic import Traffic
from proxy.relay.relay import Relay
from proxy.server.connection.connection import Connection
from tests.support.messages.exchanges import TOPIC, produce
from tests.support.messages.kio_messages import Ports
from tests.support.process.certificates import Authority
from tests.support.quotas.buckets import live_buckets
from tests.support.server.connections import new_connection
from tests.support.stories.playbook import drive, engine
from tests.unit.proxy.relay.responses.test_late_responses import rejected
from tests.unit.proxy.server.connection.test_connection_ends import RESET, Host

REQUEST = produce(1, size=800)


class Broker(Host):
    """Rejects the records after the client's reset."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        super().__init__()
        self.limits: QuotaEngine = engine({}, resources=Resources({TOPIC: {PRODUCER_BYTE_RATE.name: "1000"}}))
        self.received = asyncio.Event()
        self._tls = tls

    def opened(self, connection: Connection, address: str) -> Relay:
        self.open.add(connection)
        relay: Relay = drive(self.limits, Ports(), Traffic()).relay
        return relay

    async def connect(self, connection: Connection, broker: asyncio.Protocol) -> None:
        loop = asyncio.get_running_loop()
        name = None if self._tls is None else "localhost"
        await loop.create_connection(
            lambda: broker, "127.0.0.1", self.broker_port, ssl=self._tls, server_hostname=name
        )

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(len(REQUEST)) == REQUEST
        self.received.set()
        while not self.reasons:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        writer.write(rejected(1))
        await reader.read()
        writer.close()

    @property
    def used(self) -> float:
        return sum(bucket.used for bucket in live_buckets(self.limits))


async def resets(host: Broker, tls: ssl.SSLContext | None) -> None:
    loop = asyncio.get_running_loop()
    broker = await asyncio.start_server(host.respond, "127.0.0.1", 0, ssl=tls)
    host.broker_port = broker.sockets[0].getsockname()[1]
    server = await loop.create_server(lambda: new_connection(host, loop), "127.0.0.1", 0)
    async with broker, server, asyncio.timeout(30):
        _, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        writer.write(REQUEST)
        await host.received.wait()
        assert host.used > 0
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.transport.abort()
        while host.used > 0 or host.gone == 0:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


class Closing(Broker):
    """Closes the connection instead of executing the request, as soon as it is told to."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        super().__init__(tls)
        self.told = asyncio.Event()
        self.closed = asyncio.Event()

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(len(REQUEST)) == REQUEST
        self.received.set()
        await self.told.wait()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        self.closed.set()


async def ends(host: Closing, tls: ssl.SSLContext | None, by_broker: bool) -> float:
    """Send a request, and end the connection; what is used when the proxy has ended it."""
    loop = asyncio.get_running_loop()
    broker = await asyncio.start_server(host.respond, "127.0.0.1", 0, ssl=tls)
    host.broker_port = broker.sockets[0].getsockname()[1]
    server = await loop.create_server(lambda: new_connection(host, loop), "127.0.0.1", 0)
    # From Python 3.12 on, a server waits for its connections to end.
    async with asyncio.timeout(30), broker, server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        writer.write(REQUEST)
        await host.received.wait()
        if by_broker:
            host.told.set()
        else:
            [connection] = host.open
            connection.abort()
        assert await reader.read() == b""
        writer.close()
        while host.gone == 0:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        used = host.used
        host.told.set()
        await host.closed.wait()
    return used


@pytest.mark.parametrize("secured", [False, True], ids=["plaintext", "TLS"])
@pytest.mark.parametrize("by_broker", [True, False], ids=["broker", "proxy"])
def test_a_request_that_the_broker_ends_the_connection_for_leaves_the_limit_to_others(
    secured: bool, by_broker: bool, tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    """If the proxy ends it, the broker may append the records later."""
    server, client = contexts(tmp_path) if secured else (None, None)
    used = loop.run_until_complete(ends(Closing(client), server, by_broker))
    assert (used == 0) is by_broker


@pytest.mark.parametrize("secured", [False, True], ids=["plaintext", "TLS"])
def test_a_client_that_resets_its_connection_leaves_the_limit_to_others(
    secured: bool, tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    server, client = contexts(tmp_path) if secured else (None, None)
    loop.run_until_complete(resets(Broker(client), server))


def contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The contexts of the broker and of its client."""
    authority = Authority(folder)
    signed = authority.sign("broker")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(signed.certificate, signed.key)
    return server, ssl.create_default_context(cafile=authority.ca)
