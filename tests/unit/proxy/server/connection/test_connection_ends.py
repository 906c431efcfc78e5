"""A connection that has ended leaves nothing to the garbage collector: a frozen cycle would stay for good."""

import asyncio
import gc
import socket
import struct
from collections.abc import Awaitable, Callable

import pytest

from proxy.errors import UpstreamUnavailable
from proxy.relay.close_reasons import (
    BROKER_CLOSED,
    BROKER_UNAVAILABLE,
    CLIENT_CLOSED,
    CLIENT_PROTOCOL_ERROR,
    DRAIN_TIMEOUT,
    DRAINED,
    RelayError,
)
from proxy.relay.inflight import FREE_IN_FLIGHT, InFlightRoom
from proxy.relay.intercepted import Intercepted
from proxy.relay.relay import Relay
from proxy.server.connection.connection import Connection
from proxy.server.connection.drain import REQUEST_CALLS
from tests.support.messages.kio_messages import framed, request_frame, request_type
from tests.support.server.connections import new_connection
from tests.support.server.relays import unlimited_relay

HEARTBEAT = request_frame(request_type(12, 0)(group_id="g", generation_id=1, member_id="m"), 7)
RESPONSE = framed((7).to_bytes(4, "big") + bytes(2))
OF_A_CONNECTION = {
    "Connection",
    "RelaySession",
    "BrokerSide",
    "SocketStream",
    "Relay",
    "Requests",
    "Responses",
}
TIMES = 3
RESET = struct.pack("ii", 1, 0)
Client = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Host:
    """Takes connections, and connects them to a broker that responds to `answered` of their requests."""

    def __init__(self, answered: int = 2, *, reachable: bool = True, late: bool = False) -> None:
        """`late`: that a broker cannot be reached turns out after the connection was aborted."""
        self.open: set[Connection] = set()
        self.room = InFlightRoom()
        self.reasons: list[str] = []
        self.gone = 0
        """How many connections have left, both sides."""
        self._answered = answered
        self._reachable = reachable
        self._late = late
        self._tasks: set[asyncio.Task[None]] = set()
        self.broker_port = 0

    def opened(self, connection: Connection, address: str) -> Relay:
        self.open.add(connection)
        return unlimited_relay(address, room=self.room)

    def start_connecting(self, connection: Connection, broker: asyncio.Protocol) -> None:
        task = asyncio.get_running_loop().create_task(connection.reach_broker(broker))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def connect(self, connection: Connection, broker: asyncio.Protocol) -> None:
        if not self._reachable:
            if self._late:
                connection.abort()
                await asyncio.sleep(0.01)
            raise UpstreamUnavailable("nobody is there")
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: broker, "127.0.0.1", self.broker_port)

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The broker; it closes a connection after its last response."""
        for _ in range(self._answered):
            if not await reader.read(len(HEARTBEAT)):
                break
            writer.write(RESPONSE)
        else:
            await reader.read(len(HEARTBEAT))
        writer.close()

    def start_answering(self, connection: Connection, request: Intercepted) -> None:
        raise AssertionError("nothing is intercepted")

    def failed(self, connection: Connection, error: RelayError) -> None:
        pass

    def ended(self, connection: Connection, reason: str) -> None:
        self.open.discard(connection)
        self.reasons.append(reason)

    def left(self, connection: Connection) -> None:
        self.gone += 1


class Connected(asyncio.Protocol):
    """Cancels the dial at the moment at which it has connected."""

    def __init__(self, broker: asyncio.Protocol, dial: "asyncio.Task[None]") -> None:
        self._broker = broker
        self._dial = dial

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._broker.connection_made(transport)
        self._dial.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._broker.connection_lost(exc)


class LateDialer(Host):
    """Its dials time out at the moment at which they have connected."""

    async def connect(self, connection: Connection, broker: asyncio.Protocol) -> None:
        loop = asyncio.get_running_loop()
        (dial,) = self._tasks
        try:
            await loop.create_connection(lambda: Connected(broker, dial), "127.0.0.1", self.broker_port)
        except asyncio.CancelledError:
            raise UpstreamUnavailable("no connection in time") from None


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(HEARTBEAT)
    assert await reader.readexactly(len(RESPONSE)) == RESPONSE


async def closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await _exchange(reader, writer)


async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    pass


async def goes_amid_a_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await _exchange(reader, writer)
    writer.write(HEARTBEAT[:10])


async def resets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await _exchange(reader, writer)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.write(HEARTBEAT)
    writer.transport.abort()


async def waits_for_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(HEARTBEAT)
    while await reader.read(100):
        pass


async def pipelines(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(HEARTBEAT * (FREE_IN_FLIGHT + 5))
    while await reader.read(100):
        pass


async def visits(host: Host, client: Client, end: Callable[[Host], None] | None) -> None:
    """Have TIMES clients, one after the other, and wait until their connections have left."""
    loop = asyncio.get_running_loop()
    broker = await asyncio.start_server(host.respond, "127.0.0.1", 0)
    host.broker_port = broker.sockets[0].getsockname()[1]
    server = await loop.create_server(lambda: new_connection(host, loop), "127.0.0.1", 0)
    async with broker, server, asyncio.timeout(30):
        for visit in range(1, TIMES + 1):
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            if end is not None:
                await _exchange(reader, writer)
                end(host)
            else:
                await client(reader, writer)
            writer.close()
            while host.gone < visit:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        await asyncio.sleep(0)


def aborted(host: Host) -> None:
    for connection in list(host.open):
        connection.abort()


def drained(host: Host) -> None:
    for _ in range(REQUEST_CALLS + 1):
        for connection in list(host.open):
            connection.drain(0.0)


@pytest.mark.parametrize(
    ("client", "end", "host", "reason"),
    [
        (closes, None, Host, CLIENT_CLOSED),
        (says_nothing, None, Host, CLIENT_CLOSED),
        (goes_amid_a_request, None, Host, CLIENT_PROTOCOL_ERROR),
        (resets, None, Host, CLIENT_CLOSED),
        (pipelines, None, lambda: Host(0), BROKER_CLOSED),
        (waits_for_the_end, None, lambda: Host(0), BROKER_CLOSED),
        (waits_for_the_end, None, lambda: Host(reachable=False), BROKER_UNAVAILABLE),
        (waits_for_the_end, None, lambda: Host(reachable=False, late=True), DRAIN_TIMEOUT),
        (waits_for_the_end, None, LateDialer, BROKER_UNAVAILABLE),
        (closes, aborted, Host, DRAIN_TIMEOUT),
        (closes, drained, Host, DRAINED),
    ],
    ids=[
        "closes",
        "silent",
        "amid a request",
        "reset",
        "requests in flight",
        "broker closes",
        "unreachable",
        "unreachable, late",
        "connected too late",
        "aborted",
        "drained",
    ],
)
def test_it_leaves_nothing_to_collect(
    client: Client,
    end: Callable[[Host], None] | None,
    host: Callable[[], Host],
    reason: str,
    loop: asyncio.AbstractEventLoop,
) -> None:
    served = host()
    # What other tests have left is not looked at again, nor afterwards (tests/conftest.py).
    gc.collect()
    gc.freeze()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        before = _alive()
        loop.run_until_complete(visits(served, client, end))
        gc.collect()
        in_cycles = {type(each).__name__ for each in gc.garbage if type(each).__module__.startswith("proxy.")}
        gc.garbage.clear()
        alive = _alive()
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert served.reasons == [reason] * TIMES
    assert not in_cycles, "a cycle"
    assert alive == before, "something keeps them"
    assert served.room.taken == 0


def _alive() -> int:
    """How many objects there are of which connections are made."""
    return sum(type(each).__name__ in OF_A_CONNECTION for each in gc.get_objects())
