"""The steps of handshakes are taken one after the other with pauses, in turn by source."""

import asyncio
from functools import partial
from itertools import pairwise

import pytest

from proxy.server.listener.accept.handshake_turns import PAUSE_SECONDS, HandshakeTurns

STORM, OTHER = "10.0.0.1", "10.0.0.2"


class Handshakes:
    """Tasks that wait for their turns."""

    def __init__(self, loop: asyncio.AbstractEventLoop, number: int = 0) -> None:
        self.loop = loop
        self.turns = HandshakeTurns(loop)
        self.started: list[int] = []
        self.tasks: list[asyncio.Task[None]] = []
        for each in range(number):
            self.add(each)

    def add(self, number: int, address: str = STORM) -> None:
        self.tasks.append(self.loop.create_task(self.start(number, address)))

    async def start(self, number: int, address: str) -> None:
        await self.turns.turn(address)
        self.started.append(number)

    async def end(self) -> None:
        async with asyncio.timeout(30):
            await asyncio.gather(*self.tasks, return_exceptions=True)


def test_many_clients_that_connect_at_once_leave_time_to_others(loop: asyncio.AbstractEventLoop) -> None:
    turns = HandshakeTurns(loop)
    taken: dict[int, float] = {}
    done = loop.create_future()

    def take(number: int) -> bool:
        taken[number] = loop.time()
        if number == 19:
            done.set_result(None)
        return True

    for number in range(20):
        turns.ask(STORM, partial(take, number))
    loop.run_until_complete(done)
    assert list(taken) == list(range(20))
    early = 0.0001  # rounding
    assert all(after - before >= PAUSE_SECONDS - early for before, after in pairwise(taken.values()))


def test_a_storm_from_one_address_delays_another_by_one_handshake(loop: asyncio.AbstractEventLoop) -> None:
    handshakes = Handshakes(loop, 20)
    handshakes.add(100, OTHER)
    handshakes.add(101, OTHER)
    loop.run_until_complete(handshakes.end())
    assert handshakes.started.index(100) == 1
    assert handshakes.started.index(101) == 3


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


@pytest.mark.parametrize(
    ("own", "other"), [("2001:db8::N", "2001:db8:0:1::"), ("fe80::N%1", "::ffff:10.0.0.1")]
)
def test_addresses_of_an_ipv6_network_are_one_source(
    loop: asyncio.AbstractEventLoop, own: str, other: str
) -> None:
    handshakes = Handshakes(loop)
    for number in range(10):
        handshakes.add(number, own.replace("N", str(number)))
    handshakes.add(100, other)
    loop.run_until_complete(handshakes.end())
    assert handshakes.started.index(100) <= 1


def test_ipv4_addresses_of_an_ipv6_socket_are_sources_of_their_own(loop: asyncio.AbstractEventLoop) -> None:
    handshakes = Handshakes(loop)
    for number in range(10):
        handshakes.add(number, "::ffff:10.0.0.1")
    handshakes.add(100, "::ffff:10.0.0.2")
    loop.run_until_complete(handshakes.end())
    assert handshakes.started.index(100) <= 1


def test_who_asks_in_its_turn_waits_for_the_others(loop: asyncio.AbstractEventLoop) -> None:
    turns = HandshakeTurns(loop)
    taken: list[str] = []
    done = loop.create_future()

    def take(name: str, again: int) -> bool:
        taken.append(name)
        if again:
            turns.ask(name, lambda: take(name, again - 1))
        elif taken.count(STORM) == 3:
            done.set_result(None)
        return True

    turns.ask(STORM, lambda: take(STORM, 2))
    turns.ask(OTHER, lambda: take(OTHER, 1))
    loop.run_until_complete(done)
    assert taken == [STORM, OTHER, STORM, OTHER, STORM]


def test_a_step_that_is_not_taken_uses_no_turn(loop: asyncio.AbstractEventLoop) -> None:
    turns = HandshakeTurns(loop)
    asked: list[float] = []
    done = loop.create_future()

    def leave() -> bool:
        asked.append(turns._next_at)
        return False

    def take() -> bool:
        done.set_result(turns._next_at)
        return True

    for _ in range(5):
        turns.ask(STORM, leave)
    turns.ask(STORM, take)
    assert loop.run_until_complete(done) == 0.0  # it is the first turn
    assert (asked, turns._waiting) == ([0.0] * 5, {})
