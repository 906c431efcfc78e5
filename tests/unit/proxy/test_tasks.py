"""Tasks: they stay referenced, their failures are logged, and cancel() waits for their ends."""

import asyncio
import gc

import pytest

from proxy.tasks import Tasks, every


async def test_a_task_without_other_references_ends() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0)
        ended.set()

    tasks = Tasks()
    tasks.start(work())
    gc.collect()
    async with asyncio.timeout(30):
        await ended.wait()


async def test_a_failure_is_logged_and_a_cancellation_is_not(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ZeroDivisionError("details")

    tasks = Tasks()
    tasks.start(asyncio.sleep(1000))
    failed = tasks.start(fail())
    await asyncio.wait([failed])
    await tasks.cancel()
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


async def test_a_task_that_has_just_been_started_begins_before_it_is_cancelled() -> None:
    """It may be there to close something."""
    begun: list[bool] = []

    async def close() -> None:
        begun.append(True)
        await asyncio.Event().wait()

    tasks = Tasks()
    tasks.start(close())
    await tasks.cancel()
    assert begun == [True]


async def test_cancelling_waits_for_what_tasks_do_at_their_end() -> None:
    done: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            done.append("closed")

    tasks = Tasks()
    tasks.start(work())
    await asyncio.sleep(0)
    await tasks.cancel()
    await tasks.cancel()
    assert done == ["closed"]


async def test_work_is_called_after_each_pause_until_it_is_cancelled() -> None:
    calls: list[int] = []
    thrice = asyncio.Event()

    def work() -> None:
        calls.append(len(calls))
        if len(calls) == 3:
            thrice.set()

    tasks = Tasks()
    tasks.start(every(1000.0, work))
    await asyncio.sleep(0)
    assert calls == []
    tasks.start(every(0.0, work))
    async with asyncio.timeout(30):
        await thrice.wait()
    await tasks.cancel()
    done = len(calls)
    await asyncio.sleep(0)
    assert len(calls) == done
