"""Sinks: at least once, in order, and in bounded memory while nobody takes anything."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from proxy.telemetry.usage import sink as module
from proxy.telemetry.usage.events import Encoded
from proxy.telemetry.usage.sink import BATCH_EVENTS, EVENT_BYTES, Sink, SinkUnavailable


class Fake(Sink):
    """Delivers while it is open."""

    def __init__(self, max_waiting_bytes: int = 1 << 20) -> None:
        super().__init__("fake", max_waiting_bytes)
        self.got: list[bytes] = []
        self.tries = 0
        self.open = asyncio.Event()
        self.stuck = False
        self.released = False
        self.tried_often = asyncio.Event()

    async def deliver(self, batch: Sequence[Encoded]) -> None:
        self.tries += 1
        if self.tries == 3:
            self.tried_often.set()
        if self.stuck:
            await self.open.wait()
        if not self.open.is_set():
            raise SinkUnavailable("it is closed")
        self.got += [event.value for event in batch]

    async def release(self) -> None:
        self.released = True


def events(first: int, last: int) -> list[Encoded]:
    return [Encoded(b"k", b"%03d" % number) for number in range(first, last)]


@asynccontextmanager
async def running(sink: Sink) -> AsyncIterator[None]:
    task = asyncio.create_task(sink.run())  # noqa: TID251
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture(autouse=True)
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.001)


async def test_events_are_delivered_in_order() -> None:
    sink = Fake()
    sink.open.set()
    async with running(sink):
        sink.offer(events(0, 3))
        sink.offer(events(3, 5))
        await sink.finish(5.0)
    assert sink.got == [event.value for event in events(0, 5)]
    assert (sink.delivered, sink.lost, sink.waiting, sink.problem) == (5, 0, 0, "")
    assert sink.released


async def test_events_are_delivered_once_the_sink_recovers() -> None:
    sink = Fake()
    async with running(sink):
        sink.offer(events(0, 3))
        await sink.tried_often.wait()
        assert (sink.problem, sink.waiting, sink.delivered) == ("it is closed", 3, 0)
        sink.offer(events(3, 5))
        sink.open.set()
        await sink.finish(5.0)
    assert sink.got == [event.value for event in events(0, 5)]
    assert (sink.delivered, sink.lost, sink.waiting, sink.problem) == (5, 0, 0, "")


async def test_deliveries_go_on_after_an_unforeseen_error(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Fake):
        async def deliver(self, batch: Sequence[Encoded]) -> None:
            if self.tries < 3:
                self.tries += 1
                raise ValueError("it is broken")
            await super().deliver(batch)

    sink = Broken()
    sink.open.set()
    async with running(sink):
        sink.offer(events(0, 3))
        await sink.finish(5.0)
    assert (sink.delivered, sink.lost, sink.problem) == (3, 0, "")
    assert [record.exc_info is not None for record in caplog.records if record.levelname == "ERROR"] == [True]


async def test_the_oldest_events_are_dropped_if_the_buffer_is_full() -> None:
    sink = Fake(max_waiting_bytes=5 * (4 + EVENT_BYTES))
    for number in range(8):
        sink.offer(events(number, number + 1))
    assert (sink.waiting, sink.lost) == (5, 3)
    sink.open.set()
    async with running(sink):
        await sink.finish(5.0)
    # The first may have been on its way already.
    assert sink.got == [b"000", b"004", b"005", b"006", b"007"]
    assert (sink.delivered, sink.lost) == (5, 3)


async def test_many_events_are_delivered_in_batches() -> None:
    sink = Fake()
    sink.open.set()
    async with running(sink):
        sink.offer(events(0, BATCH_EVENTS + 1))
        await sink.finish(5.0)
    assert (sink.tries, sink.delivered) == (2, BATCH_EVENTS + 1)


async def test_undelivered_events_are_dropped_at_shutdown() -> None:
    sink = Fake()
    sink.stuck = True
    async with running(sink):
        sink.offer(events(0, 3))
        await sink.finish(0.01)
    assert (sink.delivered, sink.lost) == (0, 3)
    assert sink.released
