"""BulkReads: in one turn of the event loop, all sockets together are read up to a number of bytes."""

import asyncio
import socket
from collections.abc import Callable
from typing import cast

from proxy.quota.identity import ClientKey
from proxy.relay.counters.traffic import Traffic
from proxy.relay.relay import Relay
from proxy.server.connection.bulk_reads import RESUMED, TURN_BYTES, BulkReader, BulkReads
from proxy.server.connection.connection import Connection
from proxy.server.connection.pauses import BULK, Pauses
from tests.support.messages.exchanges import opaque
from tests.support.server.connections import new_connection
from tests.support.stories.playbook import new_relay
from tests.unit.proxy.server.connection.test_connection_ends import Host
from tests.unit.proxy.server.connection.test_pauses import Transport

READ: int = 256 << 10
"""The most that an event loop reads from a socket at once."""
ALICE: ClientKey = ("alice", "")
BOB: ClientKey = ("bob", "")
CONNECTIONS = 12
LARGE = opaque(1, body=bytes(64 << 20))[:READ]
"""The beginning of a request that does not end."""


class FakeLoop:
    """An event loop whose turns a test begins."""

    def __init__(self) -> None:
        self._next: list[Callable[[], None]] = []
        self.reads = BulkReads(self._next.append)

    @property
    def idle(self) -> bool:
        return not self._next

    def begin(self) -> None:
        called, self._next[:] = list(self._next), []
        for each in called:
            each()


class Socket:
    def __init__(self) -> None:
        self.transport = Transport()
        self.reader = BulkReader(Pauses())
        self.reader.transport = cast("asyncio.Transport", self.transport)

    @property
    def paused(self) -> bool:
        return self.reader.pauses.has(BULK)


def read(loop: FakeLoop, *sockets: Socket, client: ClientKey = ALICE, size: int = READ) -> None:
    """The event loop reads those of the sockets that are not paused."""
    for each in sockets:
        if not each.paused:
            loop.reads.took(each.reader, size, client)


def test_after_the_bytes_of_a_turn_sockets_are_paused() -> None:
    loop = FakeLoop()
    sockets = [Socket() for _ in range(CONNECTIONS)]
    read(loop, *sockets[:1])
    assert not sockets[0].paused
    read(loop, *sockets[1 : TURN_BYTES // READ])
    assert all(each.paused for each in sockets[: TURN_BYTES // READ])


def with_idle_sockets() -> tuple[FakeLoop, list[Socket]]:
    """Sockets that have had a large read each; all but the first are idle."""
    loop = FakeLoop()
    sockets = [Socket() for _ in range(CONNECTIONS)]
    for each in sockets:
        read(loop, each, size=TURN_BYTES // 4)
    while not loop.idle:
        loop.begin()
    for _ in range(2):
        read(loop, sockets[0], size=TURN_BYTES // 2)
        loop.begin()
    assert not any(each.paused for each in sockets)
    return loop, sockets


def test_idle_sockets_are_not_paused_without_need() -> None:
    loop, sockets = with_idle_sockets()
    told = [list(each.transport.told) for each in sockets[1:]]
    for _ in range(4):
        read(loop, sockets[0], size=TURN_BYTES)
        assert sockets[0].paused
        loop.begin()
    assert [each.transport.told for each in sockets[1:]] == told


def test_idle_sockets_are_paused_if_one_of_them_has_data_after_a_turn() -> None:
    loop, sockets = with_idle_sockets()
    read(loop, sockets[0], size=TURN_BYTES)
    read(loop, sockets[1])
    assert all(each.paused for each in sockets)
    while not loop.idle:
        loop.begin()
    assert not any(each.paused for each in sockets)


def test_sockets_have_turns() -> None:
    loop = FakeLoop()
    sockets = [Socket() for _ in range(CONNECTIONS)]
    for each in sockets:
        loop.reads.took(each.reader, READ, ALICE)
    seen: list[Socket] = []
    for _ in range(CONNECTIONS // RESUMED):
        loop.begin()
        reading = [each for each in sockets if not each.paused]
        assert len(reading) == RESUMED
        seen += reading
        read(loop, *reading)
    assert len(set(seen)) == CONNECTIONS


def test_a_socket_does_not_take_the_turns_of_others() -> None:
    """An event loop reads a socket until it is paused, and begins each turn with the same one."""
    loop = FakeLoop()
    sockets = [Socket() for _ in range(RESUMED)]
    for each in sockets:
        read(loop, each)
    turns: list[Socket] = []
    for _ in range(20):
        loop.begin()
        for each in sockets:
            if not each.paused:
                turns.append(each)
            while not each.paused:
                read(loop, each)
    for each in sockets:
        assert turns.count(each) >= 4


def test_clients_have_turns() -> None:
    """A client with many sockets delays another by one of them."""
    loop = FakeLoop()
    sockets = [Socket() for _ in range(CONNECTIONS)]
    own = Socket()
    for each in sockets:
        loop.reads.took(each.reader, READ, ALICE)
    loop.reads.took(own.reader, READ, BOB)
    for _ in range(3):
        loop.begin()
        assert not own.paused
        read(loop, own, client=BOB)
        read(loop, *sockets)


def test_the_end_of_a_connection() -> None:
    loop = FakeLoop()
    sockets = [Socket() for _ in range(3)]
    read(loop, sockets[0], size=TURN_BYTES // 2)
    read(loop, sockets[1], size=TURN_BYTES)
    for each in sockets:
        loop.reads.end(each.reader)
        assert each.reader.transport is None
    told = [list(each.transport.told) for each in sockets]
    while not loop.idle:
        loop.begin()
    assert [each.transport.told for each in sockets] == told


class Flooded(Host):
    """Its broker reads and does not respond."""

    def __init__(self) -> None:
        super().__init__()
        self.traffic = Traffic()

    def opened(self, connection: Connection, address: str) -> Relay:
        self.open.add(connection)
        return new_relay(traffic=self.traffic).relay

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(READ):
            pass
        writer.close()


async def most_of_a_turn(host: Flooded) -> int:
    """The bytes of the turn in which most were read, while clients send large requests at once."""
    loop = asyncio.get_running_loop()
    broker = await asyncio.start_server(host.respond, "127.0.0.1", 0)
    host.broker_port = broker.sockets[0].getsockname()[1]
    server = await loop.create_server(lambda: new_connection(host, loop), "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    most = sent = 0

    async def read_all() -> None:
        nonlocal most
        before = host.traffic.total.bytes_in
        while host.traffic.total.bytes_in < sent:
            await asyncio.sleep(0)
            most = max(most, host.traffic.total.bytes_in - before)
            before = host.traffic.total.bytes_in

    clients = []
    async with broker, server, asyncio.timeout(60):
        for _ in range(CONNECTIONS):
            client = socket.create_connection(address)
            client.setblocking(False)
            clients.append(client)
            # One after the other: each socket is known to have much.
            sent += client.send(LARGE)
            await read_all()
        most = 0
        for client in clients:
            sent += client.send(bytes(READ))
        await read_all()
        for client in clients:
            client.close()
        while host.gone < CONNECTIONS:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    return most


def test_a_turn_reads_no_more_of_real_sockets(loop: asyncio.AbstractEventLoop) -> None:
    assert loop.run_until_complete(most_of_a_turn(Flooded())) <= TURN_BYTES + READ
