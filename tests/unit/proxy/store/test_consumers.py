"""stop_consumer() on a stand-in: aiokafka's stop() rarely raises what it has to cope with."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from proxy.store.consumers import stop_consumer


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
    await stop_consumer(consumer)
    assert consumer.closed == 1


async def test_the_caller_s_own_cancellation_is_kept() -> None:
    stopping = asyncio.Event()

    async def stop() -> None:
        stopping.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(stop_consumer(Consumer(stop)))
    await stopping.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
