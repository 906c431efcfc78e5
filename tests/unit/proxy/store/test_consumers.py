"""stop_consumer() on a stand-in: aiokafka's stop() rarely raises what it has to cope with."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiokafka.errors import KafkaError

from proxy.store import consumers
from proxy.store.consumers import follow, stop_consumer
from proxy.tasks import Tasks


class Consumer:
    """A consumer whose stop() does what a test says. It is its own client."""

    def __init__(self, stop: Callable[[], Awaitable[None]]) -> None:
        self.stop = stop
        self.closed = 0
        self._client = self

    async def close(self) -> None:
        self.closed += 1


async def test_connections_are_closed_although_aiokafka_raises_a_cancellation() -> None:
    async def stop() -> None:
        raise asyncio.CancelledError

    consumer = Consumer(stop)
    await stop_consumer(consumer, Tasks())
    assert consumer.closed == 1


@pytest.mark.parametrize("cancelled", [True, False])
async def test_a_consumer_that_takes_long_to_stop_is_stopped_in_the_background(
    cancelled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether its caller is cancelled, or waits for STOP_SECONDS."""
    monkeypatch.setattr(consumers, "STOP_SECONDS", 600.0 if cancelled else 0.01)
    stopping, ended = asyncio.Event(), asyncio.Event()

    async def stop() -> None:
        stopping.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    tasks = Tasks()
    consumer = Consumer(stop)
    task = asyncio.ensure_future(stop_consumer(consumer, tasks))
    await stopping.wait()
    if cancelled:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), 60)
    assert not ended.is_set()
    await tasks.cancel()
    assert ended.is_set()
    assert consumer.closed == 0, "the cancellation was not aiokafka's own"


async def test_an_error_of_a_consumer_that_stops_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def stop() -> None:
        raise KafkaError

    await stop_consumer(Consumer(stop), Tasks())
    assert not caplog.messages


async def test_a_topic_is_followed_again_after_each_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "RETRY_SECONDS", 0.0)
    ends: list[BaseException | None] = [None, asyncio.CancelledError(), ValueError("a defect")]
    problems: list[str] = []
    over = asyncio.Event()

    async def read() -> None:
        if not ends:
            over.set()
            await asyncio.Event().wait()
        end = ends.pop(0)
        if end is not None:
            raise end

    tasks = Tasks()
    following = tasks.start(follow(read, problems.append, tasks))
    async with asyncio.timeout(30):
        await over.wait()
    assert len(problems) == 2, "not of the end that read() itself has noted"
    assert not following.done()
    await tasks.cancel()
