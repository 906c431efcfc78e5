"""Handshakes start one after the other with pauses, in turn by address, and few of them are unfinished."""

import asyncio
import socket
from itertools import pairwise

import pytest

from proxy.server.listener.accept import handshake_turns
from proxy.server.listener.accept.handshake_turns import (
    PAUSE_SECONDS,
    UNFINISHED_AT_MOST,
    HandshakeTurns,
    Unfinished,
)
from tests.support.waiting import reached

STORM, OTHER = "10.0.0.1", "10.0.0.2"


class Handshakes:
    """Tasks that wait for their turns, and the times of these.

    A time is the one at which a turn is given, by the loop's clock: a busy machine may go on late.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, number: int = 0) -> None:
        self.loop = loop
        self.turns = HandshakeTurns(loop)
        self.started: list[int] = []
        self.times: list[float] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.clients: list[socket.socket] = []
        """The clients' ends of the connections."""
        self.stay = False
        """Whether handshakes end only if the client or the proxy ends them."""
        for each in range(number):
            self.add(each)

    def add(self, number: int, address: str = STORM) -> None:
        self.tasks.append(self.loop.create_task(self.start(number, address)))

    async def start(self, number: int, address: str) -> None:
        client, own = socket.socketpair()
        own.setblocking(False)
        self.clients.append(client)
        with own:
            async with self.turns.turn(address, own):
                self.started.append(number)
                self.times.append(self.turns._next_at - PAUSE_SECONDS)
                if self.stay and not await self.loop.sock_recv(own, 1):
                    raise ConnectionResetError

    async def end(self) -> None:
        async with asyncio.timeout(30):
            await asyncio.gather(*self.tasks, return_exceptions=True)
        for client in self.clients:
            client.close()


def test_many_clients_that_connect_at_once_leave_time_to_others(loop: asyncio.AbstractEventLoop) -> None:
    handshakes = Handshakes(loop, 20)
    loop.run_until_complete(handshakes.end())
    assert handshakes.started == list(range(20))
    early = 0.0011  # the resolution of the loop's timers
    assert all(after - before >= PAUSE_SECONDS - early for before, after in pairwise(handshakes.times))
    assert handshakes.times[-1] - handshakes.times[0] >= 19 * PAUSE_SECONDS - early


def test_a_storm_from_one_address_delays_another_by_one_handshake(loop: asyncio.AbstractEventLoop) -> None:
    handshakes = Handshakes(loop, 20)

    async def another() -> None:
        await asyncio.sleep(0)
        handshakes.add(100, OTHER)
        handshakes.add(101, OTHER)
        await handshakes.end()

    loop.run_until_complete(another())
    assert handshakes.started.index(100) <= 2
    assert handshakes.started.index(101) <= 4


def test_the_turn_of_a_client_whose_time_is_up_goes_to_the_next(loop: asyncio.AbstractEventLoop) -> None:
    handshakes = Handshakes(loop, 8)

    async def some_end() -> None:
        await asyncio.sleep(0)
        for task in handshakes.tasks[::2]:
            task.cancel()
        await handshakes.end()

    loop.run_until_complete(some_end())
    assert {1, 3, 5, 7} <= set(handshakes.started)


def test_later_handshakes_have_turns_too(loop: asyncio.AbstractEventLoop) -> None:
    handshakes = Handshakes(loop, 1)
    loop.run_until_complete(handshakes.end())
    handshakes.add(1)
    loop.run_until_complete(handshakes.end())
    assert handshakes.started == [0, 1]
    assert handshakes.turns._waiting == {}


def unfinished_ones(loop: asyncio.AbstractEventLoop, address: str = STORM) -> Handshakes:
    """As many as one source may have, and one more, which waits."""
    handshakes = Handshakes(loop)
    handshakes.stay = True
    for number in range(UNFINISHED_AT_MOST + 1):
        handshakes.add(number, address.replace("N", str(number)))
    return handshakes


@pytest.mark.parametrize(
    ("own", "other"), [(STORM, OTHER), ("2001:db8::N", "2001:db8:0:1::"), ("fe80::N%1", "::ffff:10.0.0.1")]
)
def test_a_source_has_few_unfinished_handshakes(
    loop: asyncio.AbstractEventLoop, own: str, other: str
) -> None:
    async def start() -> None:
        handshakes = unfinished_ones(loop, own)
        await reached(lambda: len(handshakes.started) == UNFINISHED_AT_MOST, "handshakes")
        handshakes.add(100, other)
        await reached(lambda: 100 in handshakes.started, "handshakes")
        assert UNFINISHED_AT_MOST not in handshakes.started
        handshakes.clients[5].send(b"x")
        await reached(lambda: UNFINISHED_AT_MOST in handshakes.started, "handshakes")
        assert not handshakes.tasks[0].done()
        for client in handshakes.clients[:5] + handshakes.clients[6:]:
            client.send(b"x")
        await handshakes.end()
        assert [task.exception() for task in handshakes.tasks] == [None] * len(handshakes.tasks)
        assert handshakes.turns._unfinished == {}

    loop.run_until_complete(start())


def test_the_oldest_one_ends_for_another(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake_turns, "OLD_SECONDS", 0.01)

    async def start() -> None:
        handshakes = unfinished_ones(loop)
        await reached(lambda: UNFINISHED_AT_MOST in handshakes.started, "handshakes")
        await reached(handshakes.tasks[0].done, "handshakes")
        assert isinstance(handshakes.tasks[0].exception(), Unfinished)
        assert not any(task.done() for task in handshakes.tasks[1:])
        for client in handshakes.clients[1:]:
            client.close()
        await handshakes.end()
        ends = [task.exception() for task in handshakes.tasks[1:]]
        assert not any(isinstance(end, Unfinished) for end in ends)
        assert handshakes.turns._unfinished == {}

    loop.run_until_complete(start())


def test_ipv4_addresses_of_an_ipv6_socket_are_sources_of_their_own(loop: asyncio.AbstractEventLoop) -> None:
    async def start() -> None:
        handshakes = unfinished_ones(loop, "::ffff:10.0.0.N")
        await reached(lambda: UNFINISHED_AT_MOST in handshakes.started, "handshakes")
        for client in handshakes.clients:
            client.send(b"x")
        await handshakes.end()

    loop.run_until_complete(start())
