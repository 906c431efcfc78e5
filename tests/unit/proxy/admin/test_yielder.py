import asyncio

from proxy.admin.yielder import STEPS, Yielder


async def test_the_event_loop_gets_a_turn_every_so_many_steps() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    yielder = Yielder()
    counting = asyncio.get_running_loop().create_task(count())
    for _ in range(STEPS - 1):
        await yielder.step()
    assert turns == 0
    await yielder.step()
    assert turns == 1
    for _ in range(3 * STEPS):
        await yielder.step()
    assert turns == 4
    counting.cancel()
