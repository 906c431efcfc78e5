"""Sink: delivers usage events at least once, and buffers those that cannot be delivered yet."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

from proxy.telemetry.usage.events import Encoded

log = logging.getLogger(__name__)
MAX_WAITING_BYTES: Final = 64 << 20
"""Memory for buffered events, about 150,000; the oldest events beyond are dropped."""
EVENT_BYTES: Final = 160
"""Memory of an event besides its text: two bytes objects, the tuple, and their places in lists."""
BATCH_EVENTS: Final = 1000
"""Events that are delivered, or dropped, together."""
RETRY_SECONDS: Final = 1.0
"""The pause after a failed delivery: often enough to use a short recovery, and no load for what is down."""


class SinkUnavailable(Exception):
    """Events could not be delivered; the message says why."""


class Sink:
    """A buffer of events with a task that delivers them; kinds of sinks override deliver() and release()."""

    def __init__(self, name: str, max_waiting_bytes: int = MAX_WAITING_BYTES) -> None:
        self.name: Final = name
        """The label `sink` of the metrics."""
        self.delivered = 0
        self.lost = 0
        self.waiting = 0
        """Numbers of events; those that wait are buffered."""
        self.problem = ""
        """Why events cannot be delivered now; empty if they can."""
        self._max_waiting_bytes: Final = max_waiting_bytes
        self._waiting_bytes = 0
        self._batches: Final[deque[list[Encoded]]] = deque()
        self._arrived: Final = asyncio.Event()
        self._empty: Final = asyncio.Event()
        self._empty.set()

    def offer(self, events: Sequence[Encoded]) -> None:
        """Buffer events for delivery; if memory is full, drop the oldest."""
        for start in range(0, len(events), BATCH_EVENTS):
            batch = list(events[start : start + BATCH_EVENTS])
            self._batches.append(batch)
            self.waiting += len(batch)
            self._waiting_bytes += _size(batch)
        lost = 0
        # The first batch may be in delivery: dropped here, it could be both delivered and counted as lost.
        while self._waiting_bytes > self._max_waiting_bytes and len(self._batches) > 2:
            lost += self._drop(1)
        if lost:
            self.lost += lost
            log.error("dropped %d usage events, because the buffer is full: %s", lost, self.name)
        if self._batches:
            self._empty.clear()
            self._arrived.set()

    def _drop(self, place: int) -> int:
        """Remove a batch from the buffer; return the number of its events."""
        batch = self._batches[place]
        del self._batches[place]
        self.waiting -= len(batch)
        self._waiting_bytes -= _size(batch)
        return len(batch)

    async def run(self) -> None:
        """Deliver until cancelled."""
        while True:
            await self._arrived.wait()
            while self._batches:
                await self._deliver_first()
            self._arrived.clear()
            self._empty.set()

    async def _deliver_first(self) -> None:
        """Deliver the oldest batch, or wait RETRY_SECONDS after a failure."""
        try:
            await self.deliver(self._batches[0])
        except SinkUnavailable as error:
            if str(error) != self.problem:
                log.warning("cannot deliver usage events, will retry: %s: %s", self.name, error)
            await self._try_again_later(str(error))
            return
        except Exception as error:
            # A defect of a sink must not end the deliveries.
            if repr(error) != self.problem:
                log.exception("cannot deliver usage events, will retry: %s failed", self.name)
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
        """Wait until the buffer is empty, drop what is left after `seconds`, and release the resources."""
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            log.error("dropped %d undelivered usage events at shutdown: %s", self.waiting, self.name)
            self.lost += self.waiting
        await self.release()

    async def deliver(self, batch: Sequence[Encoded]) -> None:
        """Deliver all events. Raises SinkUnavailable if some may be undelivered; then all are delivered
        again.
        """
        raise NotImplementedError

    async def release(self) -> None:
        """Release the resources of delivery."""


def _size(batch: Sequence[Encoded]) -> int:
    return sum(len(event.key) + len(event.value) + EVENT_BYTES for event in batch)
