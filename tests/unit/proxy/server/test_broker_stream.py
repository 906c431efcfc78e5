"""A large answer on real sockets: past the relay, whole, and in order, whatever the client's pace is."""

import asyncio
import gc
import hashlib
from collections.abc import Awaitable, Callable, Iterator

import pytest
import uvloop

from proxy.quota.engine import QuotaEngine
from proxy.relay.relay import Relay
from proxy.relay.traffic import Traffic
from proxy.server import broker_stream
from proxy.server.connection import Connection
from tests.support.exchanges import answered, fetch, fetch_response, opaque
from tests.support.messages import Ports, response_frame

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
ANSWER = response_frame(fetch_response(12, bytes(range(256)) * (20 << 12)), 1)
"""20 MiB, more than sockets hold."""


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    loop = LOOPS[request.param]()
    yield loop
    loop.close()


class Owner:
    """Knows one broker."""

    def __init__(self, broker_port: int) -> None:
        self.traffic = Traffic()
        self.ended_with: list[str] = []
        self.left_by = asyncio.Event()
        self._broker_port = broker_port
        self._tasks: list[asyncio.Task[None]] = []

    def opened(self, connection: Connection, address: str) -> Relay:
        return Relay(QuotaEngine([]), Ports(), self.traffic, "user", address, 1 << 20)

    def start_connecting(self, connection: Connection, broker: asyncio.Protocol) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(connection.reach_broker(broker)))

    async def connect(self, connection: Connection, broker: asyncio.Protocol) -> None:
        await asyncio.get_running_loop().create_connection(lambda: broker, "127.0.0.1", self._broker_port)

    def ended(self, connection: Connection, reason: str) -> None:
        self.ended_with.append(reason)

    def left(self, connection: Connection) -> None:
        self.left_by.set()


async def served(
    answer: bytes, client: Callable[[int], Awaitable[bytes | None]]
) -> tuple[bytes | None, Owner]:
    """What the client makes of a broker that answers its first bytes so, and closes when the client has."""

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        writer.write(answer)
        await reader.read()
        writer.close()

    loop = asyncio.get_running_loop()
    async with asyncio.timeout(30), await asyncio.start_server(broker, "127.0.0.1", 0) as upstream:
        owner = Owner(upstream.sockets[0].getsockname()[1])
        async with await loop.create_server(lambda: Connection(owner, 1, loop), "127.0.0.1", 0) as server:
            told = await client(server.sockets[0].getsockname()[1])
            await owner.left_by.wait()
    return told, owner


async def all_of(port: int, size: int, pause: Callable[[int], float]) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
    writer.write(fetch(1, version=12) + opaque(2))
    got = b""
    while len(got) < size:
        got += await reader.read(1 << 20)
        await asyncio.sleep(pause(len(got)))
    writer.close()
    return got


@pytest.mark.parametrize("pause", [0.0, 0.002], ids=["fast", "slow"])
def test_a_large_answer_and_what_follows_it(loop: asyncio.AbstractEventLoop, pause: float) -> None:
    answer = ANSWER + answered(2)
    got, owner = loop.run_until_complete(
        served(answer, lambda port: all_of(port, len(answer), lambda size: pause))
    )
    assert isinstance(got, bytes)
    assert hashlib.sha256(got).digest() == hashlib.sha256(answer).digest()
    assert owner.traffic.total.bytes_out == len(answer)
    assert owner.ended_with == ["client_closed"]


def test_on_uvloop_most_of_it_is_read_into_our_own_buffer() -> None:
    loop = uvloop.new_event_loop()
    size = len(broker_stream.BUFFER)
    broker_stream.BUFFER[:] = bytes(size)
    answer = ANSWER + answered(2)
    loop.run_until_complete(served(answer, lambda port: all_of(port, len(answer), lambda size: 0.0)))
    loop.close()
    assert bytes(broker_stream.BUFFER[:512]) != bytes(512)


def test_a_client_that_goes_in_the_middle(loop: asyncio.AbstractEventLoop) -> None:
    async def impatient(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(fetch(1, version=12))
        await reader.readexactly(1 << 20)
        writer.transport.abort()

    _, owner = loop.run_until_complete(served(ANSWER, impatient))
    assert len(owner.ended_with) == 1


def test_a_connection_that_is_over_leaves_nothing_to_collect(loop: asyncio.AbstractEventLoop) -> None:
    answer = ANSWER + answered(2)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        loop.run_until_complete(served(answer, lambda port: all_of(port, len(answer), lambda size: 0.0)))
        gc.collect()
        left = {type(each).__module__ for each in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not [module for module in left if module.startswith("proxy.")]
