"""Long work on requests: what is done in one turn of the event loop does not depend on how many there are."""

import asyncio
from collections import Counter

import pytest

from proxy.admin.yielder import GRANT, NO_CLIENT, SLICE, STEPS, Yielder
from proxy.quota.identity import ClientKey
from tests.support.loop_turns import counted_turns


class StepsByTurn:
    """Counts the turns of the loop, and the steps of all work in each."""

    def __init__(self) -> None:
        self.turn = 0
        self.steps: Counter[int] = Counter()
        self.counting = asyncio.get_running_loop().create_task(self._count())

    async def _count(self) -> None:
        while True:
            self.turn += 1
            await asyncio.sleep(0)

    async def work(self, steps: int, client: ClientKey = NO_CLIENT) -> None:
        yielder = Yielder(client)
        for _ in range(steps):
            await yielder.step()
            self.steps[self.turn] += 1


async def test_one_piece_of_work_has_all_of_a_turn() -> None:
    turns = StepsByTurn()
    await turns.work(4 * STEPS)
    assert set(turns.steps.values()) == {STEPS}
    assert turns.turn <= 5


@pytest.mark.parametrize("pieces", [2, 100])
async def test_a_turn_has_no_more_work_if_many_clients_cause_it(pieces: int) -> None:
    turns = StepsByTurn()
    async with asyncio.timeout(60):
        await asyncio.gather(*[turns.work(STEPS) for _ in range(pieces)])
    assert sum(turns.steps.values()) == pieces * STEPS
    assert max(turns.steps.values()) <= STEPS


async def test_nor_if_each_of_them_is_small() -> None:
    """A request that fits in one grant waits too, if others have used up the turn."""
    turns = StepsByTurn()
    async with asyncio.timeout(60):
        await asyncio.gather(*[turns.work(GRANT) for _ in range(10 * STEPS // GRANT)])
    assert max(turns.steps.values()) <= STEPS


async def test_a_small_request_is_not_behind_all_of_a_large_one() -> None:
    turns = StepsByTurn()
    large = asyncio.get_running_loop().create_task(turns.work(100 * STEPS))
    await asyncio.sleep(0)
    began = turns.turn
    await turns.work(1)
    assert turns.turn - began <= 3
    large.cancel()


async def test_work_that_is_cancelled_leaves_its_turn_to_others() -> None:
    turns = StepsByTurn()
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(turns.work(10 * STEPS)) for _ in range(20)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    began = turns.turn
    async with asyncio.timeout(60):
        await turns.work(STEPS)
    assert turns.turn - began <= 2, "the cancelled work takes no grant"
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_clients_have_turns_and_not_their_connections() -> None:
    """Ten requests of one client do not delay another's ten times as much as one would."""
    turns = StepsByTurn()
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(turns.work(100 * STEPS, ("attacker", ""))) for _ in range(50)]
    await asyncio.sleep(0)
    began = turns.turn
    await turns.work(2 * STEPS, ("neighbour", ""))
    assert turns.turn - began <= 2 * STEPS // GRANT + 2, "a grant in each turn is the neighbour's"
    for task in tasks:
        task.cancel()


async def test_what_is_done_with_is_freed_in_several_turns() -> None:
    items = list(range(4 * STEPS * SLICE + 1))
    named = dict.fromkeys(items)
    async with counted_turns() as turns:
        await Yielder().free(items, named)
    assert (items, named) == ([], {})
    assert turns.count >= 8


async def test_slices_have_all_items_and_each_is_a_step() -> None:
    yielder = Yielder()
    async with counted_turns() as turns:
        found = [part async for part in yielder.slices(range(4 * STEPS * SLICE + 1))]
    assert [len(part) for part in found] == [SLICE] * (4 * STEPS) + [1]
    assert found[-1][0] == 4 * STEPS * SLICE
    assert turns.count >= 4
