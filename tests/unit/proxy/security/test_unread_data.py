"""A TLS connection that is not read from while the peer ends it."""

import asyncio
import socket
import ssl
import threading
from pathlib import Path
from typing import cast

import uvloop

from proxy.security.settings import Tls
from proxy.security.tls import server_tls
from proxy.security.unread_data import keep_unread_data
from tests.support.process.certificates import Authority

SENT = b"x" * 50_000


class Paused(asyncio.Protocol):
    """It reads nothing until transport.resume_reading()."""

    def __init__(self) -> None:
        self.got = b""
        self.lost = asyncio.Event()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        keep_unread_data(transport)
        self.transport = cast("asyncio.Transport", transport)
        self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self.got += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


def send_and_end(authority: Authority, port: int, ended: threading.Event) -> None:
    context = ssl.create_default_context(cafile=authority.ca)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as client,
    ):
        client.sendall(SENT)
        client.shutdown(socket.SHUT_WR)
        ended.set()
        # A socket that is closed with bytes that nobody has read would reset the connection.
        while client.recv(1 << 16):
            pass


def test_nothing_is_lost(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    signed = authority.sign("proxy")
    context = server_tls(Tls(certificate=signed.certificate, key=signed.key), ()).context

    async def serve() -> bytes:
        loop = asyncio.get_running_loop()
        protocol = Paused()
        ended = threading.Event()
        async with asyncio.timeout(30):
            server = await loop.create_server(lambda: protocol, "127.0.0.1", 0, ssl=context)
            port = server.sockets[0].getsockname()[1]
            client = loop.run_in_executor(None, send_and_end, authority, port, ended)
            await loop.run_in_executor(None, ended.wait, 20)
            assert protocol.transport is not None
            protocol.transport.resume_reading()
            await protocol.lost.wait()
            await client
            server.close()
        return protocol.got

    assert uvloop.run(serve()) == SENT
