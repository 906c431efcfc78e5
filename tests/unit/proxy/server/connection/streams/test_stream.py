"""Large messages on real sockets: past the relay, whole, and in order, whatever the pace of the reader is."""

import asyncio
import gc
import hashlib
import os
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest
import uvloop

from proxy.relay.close_reasons import RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.relay import Relay
from proxy.server.connection.connection import Connection
from proxy.server.connection.streams import stream
from proxy.server.connection.streams.splice import SPLICE
from tests.support.messages.exchanges import fetch, fetch_response, fetched, opaque, produce, responded
from tests.support.messages.kio_messages import response_frame
from tests.support.server.connections import new_connection
from tests.support.server.relays import unlimited_relay

RESPONSE = response_frame(fetch_response(12, bytes(range(256)) * (20 << 12)), 1)
"""20 MiB, more than sockets hold."""


@pytest.fixture(params=["spliced", "copied"])
def ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways past the relay: with the system's help, and as where it has none to give."""
    SPLICE.open()
    if request.param == "copied":
        SPLICE.works = False
    yield
    SPLICE.close()


class ConnectionHost:
    """Knows one broker."""

    def __init__(self, broker_port: int) -> None:
        self.traffic = Traffic()
        self.ended_with: list[str] = []
        self.left_by = asyncio.Event()
        self._open = 0
        self._broker_port = broker_port
        self._tasks: list[asyncio.Task[None]] = []

    def opened(self, connection: Connection, address: str) -> Relay:
        self._open += 1
        return unlimited_relay(address, traffic=self.traffic)

    def start_connecting(self, connection: Connection, broker: asyncio.Protocol) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(connection.reach_broker(broker)))

    async def connect(self, connection: Connection, broker: asyncio.Protocol) -> None:
        await asyncio.get_running_loop().create_connection(lambda: broker, "127.0.0.1", self._broker_port)

    def failed(self, connection: Connection, error: RelayError) -> None:
        pass

    def ended(self, connection: Connection, reason: str) -> None:
        self.ended_with.append(reason)

    def left(self, connection: Connection) -> None:
        self._open -= 1
        if self._open == 0:
            self.left_by.set()


async def served(
    response: bytes | Sequence[bytes],
    client: Callable[[int], Awaitable[bytes | None]],
    cut_short: bool = False,
) -> tuple[bytes | None, ConnectionHost]:
    """What the client makes of a broker that responds so to its first bytes, and closes when the client has.

    In pieces: each is on its way before the next. `cut_short`: the broker closes right behind them.
    """

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        for piece in [response] if isinstance(response, bytes) else response:
            writer.write(piece)
            await asyncio.sleep(0)
        if not cut_short:
            await reader.read()
        writer.close()

    loop = asyncio.get_running_loop()
    async with asyncio.timeout(30), await asyncio.start_server(broker, "127.0.0.1", 0) as upstream:
        owner = ConnectionHost(upstream.sockets[0].getsockname()[1])
        async with await loop.create_server(lambda: new_connection(owner, loop), "127.0.0.1", 0) as server:
            told = await client(server.sockets[0].getsockname()[1])
            await owner.left_by.wait()
    return told, owner


TWO_REQUESTS = fetch(1, version=12) + opaque(2)


async def all_of(
    port: int, size: int, pause: Callable[[int], float], requests: bytes = TWO_REQUESTS
) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
    writer.write(requests)
    got = b""
    while len(got) < size:
        got += await reader.read(1 << 20)
        await asyncio.sleep(pause(len(got)))
    writer.close()
    return got


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("pause", [0.0, 0.002], ids=["fast", "slow"])
def test_a_large_response_and_what_follows_it(loop: asyncio.AbstractEventLoop, pause: float) -> None:
    response = RESPONSE + responded(2)
    got, owner = loop.run_until_complete(
        served(response, lambda port: all_of(port, len(response), lambda size: pause))
    )
    assert isinstance(got, bytes)
    assert hashlib.sha256(got).digest() == hashlib.sha256(response).digest()
    assert owner.traffic.total.bytes_out == len(response)
    assert owner.ended_with == ["client_closed"]


@pytest.mark.usefixtures("ways")
def test_on_uvloop_most_of_it_is_spliced_or_read_into_our_own_buffer() -> None:
    loop = uvloop.new_event_loop()
    size = len(stream.BUFFER)
    stream.BUFFER[:] = bytes(size)
    response = RESPONSE + responded(2)
    loop.run_until_complete(served(response, lambda port: all_of(port, len(response), lambda size: 0.0)))
    loop.close()
    assert bytes(stream.BUFFER[:512]) != bytes(512)
    rest = bytes(stream.BUFFER[stream.HEAD_BYTES :])
    assert (rest == bytes(len(rest))) == SPLICE.works


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("seed", range(4))
def test_responses_large_and_small_that_come_in_any_pieces(
    loop: asyncio.AbstractEventLoop, seed: int
) -> None:
    """Requests sent ahead; a response begins and ends anywhere in what is read."""
    chance = random.Random(seed)
    sizes = [chance.choice([200, 7_000, 40_000, 70_000, 300_000, 1_000_000, 1_500_000]) for _ in range(12)]
    requests = b"".join(fetch(number, version=12) for number in range(len(sizes)))
    response = b"".join(fetched(number, size, version=12) for number, size in enumerate(sizes))
    pieces, at = [], 0
    while at < len(response):
        size = chance.choice([1, 100, 4_096, 8_192, 8_193, 50_000, 400_000])
        pieces.append(response[at : at + size])
        at += size
    got, owner = loop.run_until_complete(
        served(pieces, lambda port: all_of(port, len(response), lambda size: 0.0, requests))
    )
    assert isinstance(got, bytes)
    assert hashlib.sha256(got).digest() == hashlib.sha256(response).digest()
    assert owner.traffic.total.bytes_out == len(response)


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("size", [3_000_000, len(RESPONSE) - 1])
def test_a_broker_that_closes_in_the_middle(
    loop: asyncio.AbstractEventLoop, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """What it has sent is delivered, and then the client's connection ends too."""

    async def until_its_end(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(fetch(1, version=12))
        got = await reader.read()
        writer.close()
        return got

    got, owner = loop.run_until_complete(served(RESPONSE[:size], until_its_end, cut_short=True))
    assert got == RESPONSE[:size]
    assert owner.ended_with == ["broker_closed"]
    assert caplog.messages == [], "the event loop would log what the broker's protocol lacks"


@pytest.mark.usefixtures("ways")
def test_a_client_that_does_not_read_holds_up_nobody(loop: asyncio.AbstractEventLoop) -> None:
    response = RESPONSE + responded(2)

    async def two(port: int) -> bytes:
        idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 12)
        idle_writer.write(TWO_REQUESTS)
        got = await idle_reader.readexactly(100)
        assert await all_of(port, len(response), lambda size: 0.0) == response
        got += await idle_reader.readexactly(len(response) - 100)
        idle_writer.close()
        return got

    got, owner = loop.run_until_complete(served(response, two))
    assert got == response
    assert owner.traffic.total.bytes_out == 2 * len(response)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")
def test_no_more_files_are_open_afterwards(loop: asyncio.AbstractEventLoop) -> None:
    """One pipe serves all connections."""
    response = RESPONSE + responded(2)
    opened = set()
    for _ in range(3):
        loop.run_until_complete(served(response, lambda port: all_of(port, len(response), lambda size: 0.0)))
        opened.add(len(os.listdir("/proc/self/fd")))
    assert len(opened) == 1


@pytest.mark.usefixtures("ways")
def test_a_client_that_goes_in_the_middle(loop: asyncio.AbstractEventLoop) -> None:
    async def impatient(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(fetch(1, version=12))
        await reader.readexactly(1 << 20)
        writer.transport.abort()

    _, owner = loop.run_until_complete(served(RESPONSE, impatient))
    assert len(owner.ended_with) == 1


def test_a_connection_that_is_over_leaves_nothing_to_collect(loop: asyncio.AbstractEventLoop) -> None:
    response = RESPONSE + responded(2)
    # What other tests have left is not looked at again, nor afterwards (tests/conftest.py).
    gc.collect()
    gc.freeze()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        loop.run_until_complete(served(response, lambda port: all_of(port, len(response), lambda size: 0.0)))
        gc.collect()
        left = {type(each).__module__ for each in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not [module for module in left if module.startswith("proxy.")]


async def received(
    parts: Sequence[bytes], size: int, pause: float = 0.0, cut_short: bool = False
) -> tuple[bytes, ConnectionHost]:
    """What a broker gets of a client that sends these parts, and what the connection has counted.

    The broker reads `size` bytes with this pause after each read, and responds then. `cut_short`: the client
    aborts its connection behind the last part.
    """
    got = bytearray()
    done = asyncio.Event()

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while len(got) < size and (data := await reader.read(1 << 17)):
            got.extend(data)
            await asyncio.sleep(pause)
        done.set()
        writer.close()

    loop = asyncio.get_running_loop()
    async with asyncio.timeout(60), await asyncio.start_server(broker, "127.0.0.1", 0) as upstream:
        owner = ConnectionHost(upstream.sockets[0].getsockname()[1])
        async with await loop.create_server(lambda: new_connection(owner, loop), "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
            if cut_short:
                writer.transport.abort()
            await done.wait()
            writer.close()
            await owner.left_by.wait()
    return bytes(got), owner


def produce_parts(chance: random.Random, sizes: Sequence[int]) -> list[bytes]:
    """Requests of these sizes in any pieces, after a small one for which the broker is connected."""
    requests = b"".join(produce(number, size, version=9) for number, size in enumerate(sizes))
    pieces, at = [produce(99, 100, version=9)], 0
    while at < len(requests):
        size = chance.choice([1, 100, 4_096, 8_192, 8_193, 50_000, 400_000])
        pieces.append(requests[at : at + size])
        at += size
    return pieces


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("pause", [0.0, 0.002], ids=["fast", "slow"])
@pytest.mark.parametrize("seed", range(4))
def test_requests_large_and_small_that_come_in_any_pieces(
    loop: asyncio.AbstractEventLoop, seed: int, pause: float
) -> None:
    chance = random.Random(seed)
    sizes = [chance.choice([200, 40_000, 140_000, 300_000, 1_000_000]) for _ in range(12)]
    parts = produce_parts(chance, sizes)
    sent = b"".join(parts)
    got, owner = loop.run_until_complete(received(parts, len(sent), pause))
    assert hashlib.sha256(got).digest() == hashlib.sha256(sent).digest()
    assert owner.traffic.total.bytes_in == len(sent)


@pytest.mark.parametrize("spliced", [True, False])
def test_most_of_large_requests_is_spliced_on_uvloop(spliced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[int] = []
    splice = os.splice

    def counted(source: int, target: int, *given: Any) -> int:
        moved.append(splice(source, target, *given))
        return moved[-1]

    monkeypatch.setattr(os, "splice", counted)
    SPLICE.open()
    SPLICE.works = SPLICE.works and spliced
    loop = uvloop.new_event_loop()
    parts = [produce(99, 100, version=9), *(produce(number, 1_000_000, version=9) for number in range(8))]
    got, _ = loop.run_until_complete(received(parts, sum(map(len, parts))))
    loop.close()
    SPLICE.close()
    assert got == b"".join(parts)
    # Each byte moves twice: into the pipe and out of it.
    assert (sum(moved) > 2 * 4_000_000) == spliced


@pytest.mark.usefixtures("ways")
def test_a_client_that_goes_in_the_middle_of_a_request(loop: asyncio.AbstractEventLoop) -> None:
    """The broker gets a part of it and the end of the connection, as from a client that goes."""
    request = produce(1, 1_000_000, version=9)
    parts = [produce(99, 100, version=9), request[:700_000]]
    got, owner = loop.run_until_complete(received(parts, 1 << 30, cut_short=True))
    assert b"".join(parts).startswith(got)
    assert owner.ended_with == ["client_protocol_error"]
