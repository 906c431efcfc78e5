"""Direct: past a transport on real sockets, in order, and without a reference kept."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from proxy.server.connection.streams.direct import Direct, direct


class Protocol(asyncio.Protocol):
    def __init__(self) -> None:
        self.lost = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[asyncio.Transport, Direct, socket.socket]]:
    """A transport, the way past it, and the socket at the other end."""
    ours, theirs = socket.socketpair()
    transport, _ = await asyncio.get_running_loop().create_connection(Protocol, sock=ours)
    theirs.setblocking(False)
    way = direct(transport)
    assert way is not None
    try:
        yield transport, way, theirs
    finally:
        transport.abort()
        theirs.close()


async def read(theirs: socket.socket, size: int) -> bytes:
    got = b""
    async with asyncio.timeout(30):
        while len(got) < size:
            got += await asyncio.get_running_loop().sock_recv(theirs, 1 << 20)
    return got


def test_it_is_there_when_the_call_returns(loop: asyncio.AbstractEventLoop) -> None:
    async def story() -> None:
        async with pair() as (_, way, theirs):
            assert way.write(memoryview(b"bytes"))
            assert theirs.recv(100) == b"bytes"

    loop.run_until_complete(story())


def test_what_the_socket_does_not_take_follows_in_order(loop: asyncio.AbstractEventLoop) -> None:
    """The buffer is written over at once, as the next read does it."""

    async def story() -> None:
        async with pair() as (transport, way, theirs):
            buffer = bytearray(8 << 20)
            buffer[:] = bytes(range(256)) * (len(buffer) // 256)
            wanted = bytes(buffer)
            assert way.write(memoryview(buffer))
            buffer[:] = bytes(len(buffer))
            assert transport.get_write_buffer_size() > 0
            assert not way.write(memoryview(b"too early"))
            transport.write(b"the end")
            assert await read(theirs, len(wanted) + 7) == wanted + b"the end"

    loop.run_until_complete(story())


def test_nothing_is_written_past_a_transport_that_closes(loop: asyncio.AbstractEventLoop) -> None:
    """Its descriptor may be another connection's by now."""

    async def story() -> None:
        async with pair() as (transport, way, theirs):
            transport.close()
            assert not way.write(memoryview(b"bytes"))
            assert await asyncio.get_running_loop().sock_recv(theirs, 100) == b""

    loop.run_until_complete(story())


def test_a_client_that_is_gone_is_left_to_the_transport(loop: asyncio.AbstractEventLoop) -> None:
    async def story() -> None:
        async with pair() as (transport, way, theirs):
            theirs.close()
            assert way.write(memoryview(b"bytes"))
            async with asyncio.timeout(30):
                await cast("Protocol", transport.get_protocol()).lost.wait()

    loop.run_until_complete(story())


def test_no_way_past_tls() -> None:
    class Tls(asyncio.Transport):
        def get_extra_info(self, name: str, default: object = None) -> object:
            return object() if name == "sslcontext" else default

    assert direct(Tls()) is None
