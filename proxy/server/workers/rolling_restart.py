"""RollingRestart: replaces the workers one after the other, so that a new version serves without a break."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from typing import Final

from proxy.server.workers.fleet import Fleet
from proxy.server.workers.process import END_DELAY, WorkerProcess

log = logging.getLogger(__name__)
READY_SECONDS: Final = 60.0
"""A successor that cannot serve clients after this time ends, and the running workers go on."""
STATE_POLL_SECONDS: Final = 0.05
"""How often the state of a successor, and of the worker that it replaces, is checked."""


class RollingRestart:
    """Starts a successor of each worker, waits until it serves clients, and then drains the worker.

    Both accept connections at the same sockets meanwhile. If a successor does not get ready, for example
    because the file is wrong now, no further worker is replaced.
    """

    def __init__(
        self, fleet: Fleet, start: Callable[[int], Awaitable[WorkerProcess]], drain_seconds: float
    ) -> None:
        """start: starts a process for the worker with this number, one of `fleet.others`. Raises OSError.
        drain_seconds: a worker that has not ended after this time is killed.
        """
        self._fleet: Final = fleet
        self._start: Final = start
        self._drain_seconds: Final = drain_seconds
        self._runs = False

    async def run(self) -> None:
        """Replace all workers, or log why not."""
        if self._runs:
            log.warning("the workers are being replaced already")
            return
        self._runs = True
        log.info("replacing %d workers, one after the other", self._fleet.count)
        try:
            for number in range(1, self._fleet.count + 1):
                why = await self._replace(number)
                if self._fleet.stopping:
                    return
                if why:
                    log.error("worker %d is not replaced and continues: its successor %s", number, why)
                    return
        finally:
            self._runs = False
        log.info("replaced %d workers", self._fleet.count)

    async def _replace(self, number: int) -> str:
        """Replace a worker; return why it was not replaced, empty if it was."""
        try:
            successor = await self._start(number)
        except OSError as error:
            return f"cannot be started: {error}"
        why = await self._until_ready(successor)
        if why:
            successor.signal(signal.SIGTERM)
            return why
        replaced = self._fleet.take_over(successor)
        if replaced is not None:
            replaced.signal(signal.SIGTERM)
            await self._until_ended(replaced)
        return ""

    async def _until_ready(self, successor: WorkerProcess) -> str:
        """Wait until a process serves clients; return why it does not, empty if it does."""
        latest = asyncio.get_running_loop().time() + READY_SECONDS
        while not successor.how_it_ended:
            await self._fleet.ask_readiness([successor])
            if not successor.problems and not successor.how_it_ended:
                return ""
            if asyncio.get_running_loop().time() > latest:
                return f"does not serve clients after {READY_SECONDS:g} s: {successor.problems[0]}"
            await asyncio.sleep(STATE_POLL_SECONDS)
        return successor.how_it_ended

    async def _until_ended(self, worker: WorkerProcess) -> None:
        latest = asyncio.get_running_loop().time() + self._drain_seconds
        await asyncio.sleep(STATE_POLL_SECONDS)
        # Load balancers need no limits.shutdown_delay_seconds, which another signal ends.
        worker.signal(END_DELAY)
        while not worker.how_it_ended:
            if asyncio.get_running_loop().time() > latest:
                worker.signal(signal.SIGKILL)
            await asyncio.sleep(STATE_POLL_SECONDS)
