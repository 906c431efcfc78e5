"""Sink: where usage events go, at least once; what cannot be delivered yet waits in bounded memory."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

from proxy.telemetry.usage.events import Encoded

log = logging.getLogger(__name__)
MAX_WAITING_BYTES: Final = 64 << 20
"""Of events that wait; beyond that the oldest are lost. About 150,000 events."""
EVENT_BYTES: Final = 160
"""What an event takes in memory besides its text, roughly."""
BATCH_EVENTS: Final = 1000
RETRY_SECONDS: Final = 1.0


class SinkUnavailable(Exception):
    """Events could not be delivered; the text says why."""


class Sink:
    """A kind of sink has deliver() and release()."""

    def __init__(self, name: str, max_waiting_bytes: int = MAX_WAITING_BYTES) -> None:
        self.name: Final = name
        """The label `sink` of usage_events_total."""
        self.delivered = 0
        self.lost = 0
        self.waiting = 0
        self.problem = ""
        """Why events cannot be delivered at the moment; empty when they can."""
        self._max_waiting_bytes: Final = max_waiting_bytes
        self._waiting_bytes = 0
        self._batches: Final[deque[list[Encoded]]] = deque()
        self._arrived: Final = asyncio.Event()
        self._empty: Final = asyncio.Event()
        self._empty.set()

    def offer(self, events: Sequence[Encoded]) -> None:
        """Take events to be delivered; what has waited longest is lost where memory is full."""
        for start in range(0, len(events), BATCH_EVENTS):
            batch = list(events[start : start + BATCH_EVENTS])
            self._batches.append(batch)
            self.waiting += len(batch)
            self._waiting_bytes += _size(batch)
        lost = 0
        # The first batch may be on its way: were it dropped here, it could be delivered and called lost.
        while self._waiting_bytes > self._max_waiting_bytes and len(self._batches) > 2:
            lost += self._drop(1)
        if lost:
            self.lost += lost
            log.error("usage events: %d are lost, memory for those that wait is full: %s", lost, self.name)
        if self._batches:
            self._empty.clear()
            self._arrived.set()

    def _drop(self, place: int) -> int:
        batch = self._batches[place]
        del self._batches[place]
        self.waiting -= len(batch)
        self._waiting_bytes -= _size(batch)
        return len(batch)

    async def run(self) -> None:
        """Deliver for ever."""
        while True:
            await self._arrived.wait()
            while self._batches:
                await self._deliver_first()
            self._arrived.clear()
            self._empty.set()

    async def _deliver_first(self) -> None:
        try:
            await self.deliver(self._batches[0])
        except SinkUnavailable as error:
            if str(error) != self.problem:
                log.warning("usage events wait, %s: %s", self.name, error)
            await self._try_again_later(str(error))
            return
        except Exception as error:
            # Nobody has foreseen it, but it must not be the last that this sink is given.
            if repr(error) != self.problem:
                log.exception("usage events wait, %s failed", self.name)
            await self._try_again_later(repr(error))
            return
        if self.problem:
            log.info("usage events are delivered again: %s", self.name)
        self.problem = ""
        self.delivered += self._drop(0)

    async def _try_again_later(self, problem: str) -> None:
        self.problem = problem
        await asyncio.sleep(RETRY_SECONDS)

    async def finish(self, seconds: float) -> None:
        """The proxy ends: wait so long for what is on its way, then give the rest up."""
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            log.error("usage events: %d are lost with the end of the proxy: %s", self.waiting, self.name)
            self.lost += self.waiting
        await self.release()

    async def deliver(self, batch: Sequence[Encoded]) -> None:
        """Deliver all; SinkUnavailable where some may not be there: they all come again."""
        raise NotImplementedError

    async def release(self) -> None:
        """Let go of what delivering needs."""


def _size(batch: Sequence[Encoded]) -> int:
    return sum(len(event.key) + len(event.value) + EVENT_BYTES for event in batch)
