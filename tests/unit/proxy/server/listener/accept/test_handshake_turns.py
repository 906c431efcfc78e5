"""Handshakes start one after the other with pauses, in turn by address."""

import asyncio
from itertools import pairwise

from proxy.server.listener.accept.handshake_turns import PAUSE_SECONDS, HandshakeTurns

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
        for each in range(number):
            self.add(each)

    def add(self, number: int, address: str = STORM) -> None:
        self.tasks.append(self.loop.create_task(self.start(number, address)))

    async def start(self, number: int, address: str) -> None:
        await self.turns.take(address)
        self.started.append(number)
        self.times.append(self.turns._next_at - PAUSE_SECONDS)

    async def end(self) -> None:
        async with asyncio.timeout(30):
            await asyncio.gather(*self.tasks, return_exceptions=True)


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
