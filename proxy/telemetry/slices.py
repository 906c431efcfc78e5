"""Slices: long work on the event loop, done bit by bit."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

SLICE_SECONDS: Final = 0.0005
"""A request that comes meanwhile waits for so much of the work at each of the few turns that it needs."""


class Slices:
    """One piece of work; it calls give_way() after every bit, which should take less than a slice."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock: Final = clock
        self._since = clock()

    async def give_way(self) -> None:
        """Give others a turn where a slice is over."""
        if self._clock() - self._since >= SLICE_SECONDS:
            await asyncio.sleep(0)
            self._since = self._clock()
