"""Few handshakes start in one turn of the event loop, in their order."""

import asyncio

from proxy.server.listener.handshake_turns import STARTED_AT_ONCE, HandshakeTurns


class Handshakes:
    """Tasks that wait for their turns, and the turns of the loop in which they got them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        self.turns = HandshakeTurns(loop)
        self.turn = 0
        self.started: list[tuple[int, int]] = []
        self.tasks = [loop.create_task(self.start(each)) for each in range(number)]

    async def start(self, number: int) -> None:
        await self.turns.take()
        self.started.append((number, self.turn))

    async def end(self) -> None:
        """Count the turns of the loop until all tasks have ended."""
        async with asyncio.timeout(30):
            while not all(task.done() for task in self.tasks):
                self.turn += 1
                await asyncio.sleep(0)


def test_many_clients_that_connect_at_once_share_the_turns(loop: asyncio.AbstractEventLoop) -> None:
    handshakes = Handshakes(loop, 10 * STARTED_AT_ONCE)
    loop.run_until_complete(handshakes.end())
    assert [number for number, _ in handshakes.started] == list(range(10 * STARTED_AT_ONCE))
    turns = [turn for _, turn in handshakes.started]
    assert {turns.count(turn) for turn in turns} == {STARTED_AT_ONCE}


def test_the_turn_of_a_client_whose_time_is_up_goes_to_the_next(loop: asyncio.AbstractEventLoop) -> None:
    handshakes = Handshakes(loop, 4 * STARTED_AT_ONCE)

    async def some_end() -> None:
        await asyncio.sleep(0)
        for task in handshakes.tasks[::2]:
            task.cancel()
        await handshakes.end()

    loop.run_until_complete(some_end())
    numbers = [number for number, _ in handshakes.started]
    assert set(range(1, 4 * STARTED_AT_ONCE, 2)) <= set(numbers)


def test_later_handshakes_have_turns_too(loop: asyncio.AbstractEventLoop) -> None:
    handshakes = Handshakes(loop, 1)
    loop.run_until_complete(handshakes.end())
    handshakes.tasks.append(loop.create_task(handshakes.start(1)))
    loop.run_until_complete(handshakes.end())
    assert [number for number, _ in handshakes.started] == [0, 1]
