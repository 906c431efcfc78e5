"""QuotaTable: the rows of /api/quotas, and their history.

It needs no library of the admin port: a process has a history from its start, and imports these libraries
when a client connects to the port for the first time.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final

from proxy.quota.kinds.replication.state import ReplicationState
from proxy.quota.measure.bucket_state import BucketState
from proxy.telemetry.history import INTERVAL_SECONDS, History
from proxy.telemetry.quota_rows import Row, quota_row
from proxy.telemetry.replication import shown
from proxy.telemetry.slices import Slices

log = logging.getLogger(__name__)
AT_A_TIME: Final = 25
"""Buckets that are encoded before the event loop may run other work; they take about a quarter of a slice."""


async def _no_rows() -> list[Row]:
    return []


class QuotaTable:
    """The rows of one process, or of all workers."""

    def __init__(
        self,
        buckets: Callable[[], Iterable[tuple[int, BucketState]]] = tuple,
        time: Callable[[], float] = lambda: 0.0,
        replication: Callable[[], ReplicationState | None] = lambda: None,
        further: Callable[[], Awaitable[list[Row]]] = _no_rows,
    ) -> None:
        """
        buckets      the active buckets with their brokers' node ids
        time         the clock of the buckets' throttled_until
        replication  the state of the replication quotas; None without a replication listener
        further      the rows besides those of the buckets and of replication
        """
        self.history: Final = History()
        self._buckets: Final = buckets
        self._time: Final = time
        self._replication: Final = replication
        self._further: Final = further

    async def rows(self) -> AsyncIterator[Row]:
        """The rows now. The event loop runs other work in between."""
        now = self._time()
        slices = Slices()
        for number, (broker, state) in enumerate(self._buckets(), 1):
            yield quota_row(broker, state, now)
            if number % AT_A_TIME == 0:
                await slices.give_way()
        replication = self._replication()
        if replication is not None:
            for row in shown(replication, now):
                yield row
        for number, row in enumerate(await self._further(), 1):
            yield row
            if number % AT_A_TIME == 0:
                await slices.give_way()

    async def sample(self) -> None:
        """Add a sample to the history."""
        take = self.history.begin()
        async for row in self.rows():
            take(row)
        self.history.end()

    async def run(self) -> None:
        """Sample the history; never returns."""
        while True:
            try:
                await self.sample()
            except Exception:
                log.exception("admin port: cannot sample the history")
            await asyncio.sleep(INTERVAL_SECONDS)
