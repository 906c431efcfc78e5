"""Others have a turn once a slice is over, and not before."""

import asyncio

from proxy.telemetry.slices import SLICE_SECONDS, Slices


async def test_other_work_runs_after_each_slice() -> None:
    now = 100.0
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        loop.call_soon(turn)

    loop = asyncio.get_running_loop()
    slices = Slices(lambda: now)
    turn()
    for _ in range(3):
        now += SLICE_SECONDS * 0.6
        await slices.give_way()
        now += SLICE_SECONDS * 0.6
        await slices.give_way()
    assert turns == 1 + 3
