"""MeasuredWork: how long a coroutine itself runs."""

import asyncio
from collections.abc import Coroutine

import pytest

from proxy.admin.measured_work import MeasuredWork


class Clock:
    """Goes on when work is done."""

    def __init__(self) -> None:
        self.now = 0.0

    def read(self) -> float:
        return self.now

    async def work(self, *parts: float) -> str:
        for part in parts:
            self.now += part
            await asyncio.sleep(0)
        return "done"

    def measured(self, work: Coroutine[object, object, str]) -> MeasuredWork[str]:
        return MeasuredWork(work, self.read)


async def test_only_the_work_itself_counts() -> None:
    clock = Clock()
    one, other = clock.measured(clock.work(1.0, 2.0)), clock.measured(clock.work(5.0, 7.0, 9.0))

    async def run(work: MeasuredWork[str]) -> str:
        return await work

    results = await asyncio.gather(run(one), run(other))
    assert [*results] == ["done", "done"]
    assert (one.seconds, other.seconds) == (3.0, 21.0)


async def test_work_that_fails_counts_too() -> None:
    clock = Clock()

    async def fail() -> str:
        await clock.work(2.0)
        raise ZeroDivisionError

    work = clock.measured(fail())
    with pytest.raises(ZeroDivisionError):
        await work
    assert work.seconds == 2.0


async def test_what_the_work_waits_for_may_fail() -> None:
    clock = Clock()
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_exception(OSError("broken"))

    async def recover() -> str:
        try:
            await future
        except OSError as error:
            clock.now += 1.0
            return str(error)
        return ""

    work = clock.measured(recover())
    assert await work == "broken"
    assert work.seconds == 1.0


async def test_work_can_be_cancelled() -> None:
    clock = Clock()
    cleaned: list[str] = []

    async def wait() -> str:
        clock.now += 1.0
        try:
            await asyncio.Event().wait()
        finally:
            clock.now += 2.0
            cleaned.append("up")
        return ""

    work = clock.measured(wait())

    async def run() -> None:
        await work

    task = asyncio.get_running_loop().create_task(run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (cleaned, work.seconds) == (["up"], 3.0)
