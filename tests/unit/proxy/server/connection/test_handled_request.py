"""The proxy asks the broker on a client's connection, for the sake of a request that it answers itself."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from proxy.errors import UpstreamUnavailable
from proxy.quota.verdict import Verdict
from proxy.relay.close_reasons import CLIENT_CLOSED, BrokerUnreachable, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.relay.relay import Relay
from proxy.server.connection.connection import Connection
from tests.support.messages.exchanges import opaque, responded
from tests.support.messages.kio_messages import LENGTH, request_frame
from tests.support.messages.requests import metadata
from tests.support.server.connections import new_connection
from tests.support.stories.playbook import EVERYONE, new_relay

OWN: int = 49
OTHER: int = 42
QUESTION = opaque(7, OWN, body=b"a question")
CREATING = request_frame(metadata(("a",), 0), 7)
"""It may create a topic, so the quota of mutations intercepts it."""
CHANGED = request_frame(metadata(("b",), 0), 7)
NO_BROKERS = bytes(8)
"""A Metadata response v0 without brokers and topics."""
Work = Callable[[Connection, Intercepted], Awaitable[None]]


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to be")


class ConnectionHost:
    """Does some work for each request of API OWN, and knows a broker."""

    def __init__(self, work: Work, broker_port: int) -> None:
        self.ended_with: list[str] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self.broker: asyncio.Transport | None = None
        self.unreachable = False
        self._work = work
        self._broker_port = broker_port

    def opened(self, connection: Connection, address: str) -> Relay:
        intercepted = frozenset([OWN])
        return new_relay(
            {EVERYONE: {"controller_mutation_rate": 1.0}}, intercepted_api_keys=intercepted
        ).relay

    def start_answering(self, connection: Connection, request: Intercepted) -> None:
        self._start(self._work(connection, request))

    def start_connecting(self, connection: Connection, broker: asyncio.Protocol) -> None:
        self._start(connection.reach_broker(broker))

    def _start(self, work: Any) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    async def connect(self, connection: Connection, broker: asyncio.Protocol) -> None:
        if self.unreachable:
            raise UpstreamUnavailable("broker 1 is gone")
        loop = asyncio.get_running_loop()
        self.broker, _ = await loop.create_connection(lambda: broker, "127.0.0.1", self._broker_port)

    def failed(self, connection: Connection, error: RelayError) -> None:
        pass

    def ended(self, connection: Connection, reason: str) -> None:
        self.ended_with.append(reason)


class Broker:
    """Keeps what it gets, and responds when told to."""

    def __init__(self) -> None:
        self.got = b""
        self.here = asyncio.Event()
        self.writer: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        while data := await reader.read(1 << 16):
            self.got += data
            self.here.set()
        writer.close()

    async def wait_for(self, data: bytes) -> None:
        while self.got != data:
            self.here.clear()
            await self.here.wait()

    def send(self, data: bytes) -> None:
        assert self.writer is not None
        self.writer.write(data)

    def hang_up(self) -> None:
        assert self.writer is not None
        self.writer.close()


class Stage:
    """A client, the connection, and a broker."""

    def __init__(self, work: Work) -> None:
        self.broker = Broker()
        self._work = work

    async def __aenter__(self) -> "Stage":
        loop = asyncio.get_running_loop()
        self._upstream = await asyncio.start_server(self.broker.serve, "127.0.0.1", 0)
        self.owner = ConnectionHost(self._work, self._upstream.sockets[0].getsockname()[1])
        self._server = await loop.create_server(lambda: new_connection(self.owner, loop), "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        await until(lambda: self.owner.ended_with != [])
        await asyncio.gather(*self.owner.tasks, return_exceptions=True)
        if self.broker.writer is not None:
            self.broker.hang_up()
            await until(lambda: self.owner.broker is not None and self.owner.broker.is_closing())
            await self.broker.writer.wait_closed()
        await self.writer.wait_closed()
        self._server.close()
        self._upstream.close()

    async def receive(self) -> bytes:
        size = await self.reader.readexactly(LENGTH)
        return size + await self.reader.readexactly(int.from_bytes(size, "big"))


async def ask_and_response(connection: Connection, request: Intercepted) -> None:
    """The broker's response, said once more."""
    handled = connection.handled(request)
    payload = await handled.ask(QUESTION)
    handled.answer(responded(7, payload[LENGTH:] * 2))


async def test_the_brokers_response_comes_to_who_asks() -> None:
    async with asyncio.timeout(30), Stage(ask_and_response) as stage:
        stage.writer.write(opaque(7, OWN) + opaque(8, OTHER))
        await stage.broker.wait_for(QUESTION)
        stage.broker.send(responded(7, b"no"))
        assert await stage.receive() == responded(7, b"nono")
        await stage.broker.wait_for(QUESTION + opaque(8, OTHER))
        stage.broker.send(responded(8))
        assert await stage.receive() == responded(8)


async def ask_twice(connection: Connection, request: Intercepted) -> None:
    handled = connection.handled(request)
    first = await handled.ask(QUESTION)
    second = await handled.ask(QUESTION)
    handled.answer(responded(7, first[LENGTH:] + second[LENGTH:]))


async def test_one_question_after_the_other() -> None:
    async with asyncio.timeout(30), Stage(ask_twice) as stage:
        stage.writer.write(opaque(7, OWN))
        await stage.broker.wait_for(QUESTION)
        stage.broker.send(responded(7, b"first"))
        await stage.broker.wait_for(QUESTION * 2)
        stage.broker.send(responded(7, b"second"))
        assert await stage.receive() == responded(7, b"firstsecond")


async def test_who_asks_gets_the_response_though_the_client_has_gone() -> None:
    """What the broker has done is known, and can be charged."""
    async with asyncio.timeout(30), Stage(ask_and_response) as stage:
        stage.writer.write(opaque(7, OWN))
        await stage.broker.wait_for(QUESTION)
        stage.writer.transport.abort()
        stage.broker.send(responded(7, b"no"))
        await stage.owner.tasks[0]
        await until(lambda: stage.owner.ended_with == ["client_closed"])


async def test_who_asks_is_cancelled_when_the_broker_goes() -> None:
    async with asyncio.timeout(30), Stage(ask_and_response) as stage:
        stage.writer.write(opaque(7, OWN))
        await stage.broker.wait_for(QUESTION)
        stage.broker.hang_up()
        assert await stage.reader.read() == b""
        asking = stage.owner.tasks[0]
        await asyncio.wait([asking])
        assert asking.cancelled()
        assert stage.owner.ended_with == ["broker_closed"]


async def ask_or_say_why_not(connection: Connection, request: Intercepted) -> None:
    try:
        await ask_and_response(connection, request)
    except BrokerUnreachable as error:
        connection.handled(request).answer(responded(7, str(error).encode()))


async def test_who_asks_responds_though_the_broker_cannot_be_reached() -> None:
    async with asyncio.timeout(30), Stage(ask_or_say_why_not) as stage:
        stage.owner.unreachable = True
        stage.writer.write(opaque(7, OWN))
        assert await stage.receive() == responded(7, b"broker 1 is gone")
        stage.owner.unreachable = False
        stage.writer.write(opaque(7, OWN))
        await stage.broker.wait_for(QUESTION)
        stage.broker.send(responded(7, b"no"))
        assert await stage.receive() == responded(7, b"nono")


async def test_a_request_that_nobody_else_can_respond_to_ends_the_connection() -> None:
    async with asyncio.timeout(30), Stage(ask_or_say_why_not) as stage:
        stage.owner.unreachable = True
        stage.writer.write(opaque(8, OTHER) + opaque(7, OWN))
        assert await stage.reader.read() == b""
        assert stage.owner.ended_with == ["broker_unavailable"]


async def answer_in_turn(connection: Connection, request: Intercepted) -> None:
    handled = connection.handled(request)
    await handled.earlier_done()
    handled.answer(responded(7))


async def test_a_request_waits_for_the_broker_s_earlier_responses() -> None:
    async with asyncio.timeout(30), Stage(answer_in_turn) as stage:
        stage.writer.write(opaque(6, OTHER) + opaque(7, OWN))
        await stage.broker.wait_for(opaque(6, OTHER))
        await until(lambda: len(stage.owner.tasks) == 2)
        done, _ = await asyncio.wait([stage.owner.tasks[-1]], timeout=0.1)
        assert not done
        stage.broker.send(responded(6))
        assert await stage.receive() == responded(6)
        assert await stage.receive() == responded(7)


async def test_it_does_not_wait_when_the_connection_is_over() -> None:
    async with asyncio.timeout(30), Stage(answer_in_turn) as stage:
        stage.writer.write(opaque(6, OTHER) + opaque(7, OWN))
        await stage.broker.wait_for(opaque(6, OTHER))
        stage.broker.hang_up()
        with pytest.raises(RelayError) as caught:
            await stage.owner.tasks[-1]
        assert caught.value.reason == CLIENT_CLOSED


async def ask_when_it_is_over(connection: Connection, request: Intercepted) -> None:
    connection.session.close("over")
    await connection.handled(request).ask(QUESTION)


async def test_nobody_can_ask_when_the_connection_is_over() -> None:
    async with asyncio.timeout(30), Stage(ask_when_it_is_over) as stage:
        stage.writer.write(opaque(7, OWN))
        assert await stage.reader.read() == b""
        with pytest.raises(RelayError) as caught:
            await stage.owner.tasks[0]
        assert caught.value.reason == CLIENT_CLOSED
        assert stage.broker.got == b""


async def forward_changed(connection: Connection, request: Intercepted) -> None:
    connection.handled(request).forward(CHANGED)


async def test_a_request_is_forwarded_after_all() -> None:
    async with asyncio.timeout(30), Stage(forward_changed) as stage:
        stage.writer.write(CREATING + opaque(8, OTHER))
        await stage.broker.wait_for(CHANGED + opaque(8, OTHER))
        stage.broker.send(responded(7, NO_BROKERS) + responded(8))
        assert await stage.receive() == responded(7, NO_BROKERS)
        assert await stage.receive() == responded(8)


async def answer_when_it_is_over(connection: Connection, request: Intercepted) -> None:
    connection.session.close("over")
    handled = connection.handled(request)
    handled.forward(CHANGED)
    handled.answer(responded(7))


async def test_a_response_that_comes_after_the_end_is_dropped() -> None:
    async with asyncio.timeout(30), Stage(answer_when_it_is_over) as stage:
        stage.writer.write(CREATING)
        assert await stage.reader.read() == b""
        [answering] = stage.owner.tasks
        await answering
        assert stage.owner.tasks == [answering], "the broker is not connected for it"


async def answer_late(connection: Connection, request: Intercepted) -> None:
    delay_seconds = 0.2 if request.header.api_version == 0 else 0.0
    connection.handled(request).answer(responded(7), Verdict(0.2), delay_seconds)


@pytest.mark.parametrize("version", [0, 1])
async def test_a_wait_and_a_response_that_waits_as_well(version: int) -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(30), Stage(answer_late) as stage:
        started = loop.time()
        stage.writer.write(opaque(7, OWN, version) + opaque(8, OTHER))
        assert await stage.receive() == responded(7)
        if version == 0:
            assert loop.time() - started >= 0.19
        else:
            assert stage.broker.got == b"", "muted"
        await stage.broker.wait_for(opaque(8, OTHER))
        assert loop.time() - started >= 0.19
        stage.broker.send(responded(8))
        assert await stage.receive() == responded(8)


async def test_whether_the_client_has_gone_although_nothing_is_read_from_it() -> None:
    async def work(connection: Connection, request: Intercepted) -> None:
        handled = connection.handled(request)
        assert not handled.gone()
        asked.set()
        await until(handled.gone)
        handled.answer(responded(7))

    asked = asyncio.Event()
    async with asyncio.timeout(30), Stage(work) as stage:
        stage.writer.write(opaque(7, OWN))
        await asked.wait()
        stage.writer.close()
        await stage.owner.tasks[0]


@pytest.mark.parametrize("first", [b"", opaque(6, OTHER)])
async def test_a_response_is_taken_when_the_clients_socket_has_it(first: bytes) -> None:
    """Behind another one it waits for its turn."""
    large = responded(7, bytes(30 << 20))

    async def work(connection: Connection, request: Intercepted) -> None:
        handled = connection.handled(request)
        handled.answer(large)
        answered.set()
        await handled.taken()

    answered = asyncio.Event()
    async with asyncio.timeout(30), Stage(work) as stage:
        stage.writer.write(first + opaque(7, OWN))
        await answered.wait()
        working = stage.owner.tasks[-1] if not first else stage.owner.tasks[1]
        done, _ = await asyncio.wait([working], timeout=0.1)
        assert not done
        if first:
            await stage.broker.wait_for(first)
            stage.broker.send(responded(6))
            assert await stage.receive() == responded(6)
        assert await stage.receive() == large
        await working
