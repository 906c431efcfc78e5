"""Slices: divides long work, so that the event loop serves requests in between."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

SLICE_SECONDS: Final = 0.0005
"""How long the work runs before the event loop runs other work. A request needs a few turns of the loop, and
waits for one slice at each."""


class Slices:
    """One piece of work, which calls give_way() after steps that each take less than a slice."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock: Final = clock
        self._since = clock()

    async def give_way(self) -> None:
        """Let the event loop run other work if the slice is over."""
        if self._clock() - self._since >= SLICE_SECONDS:
            await asyncio.sleep(0)
            self._since = self._clock()
