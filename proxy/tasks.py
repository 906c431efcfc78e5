"""Tasks: background tasks that stay referenced until they end, and whose failures are logged.

The event loop has only weak references to its tasks, so a task without other references can vanish.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

log = logging.getLogger(__name__)


class Tasks:
    """A set of running tasks."""

    def __init__(self) -> None:
        self._running: Final[set[asyncio.Task[None]]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("%s failed", task.get_coro(), exc_info=task.exception())

    async def cancel(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        # A task that is cancelled before its first step runs nothing of its coroutine: neither what it was
        # started for, such as closing a connection, nor its cleanup.
        await asyncio.sleep(0)
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def every(seconds: float, work: Callable[[], object]) -> None:
    """Call `work` after each of these pauses, until cancelled. An error in it ends the calls."""
    while True:
        await asyncio.sleep(seconds)
        work()
