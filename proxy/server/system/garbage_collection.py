"""GarbageCollection: keeps the pauses of Python's cyclic garbage collector short.

A full collection traverses every container object. With 100,000 quotas and 10,000 active tenants that takes
most of a second, during which the event loop stands still, and frees next to nothing. So when a full
collection takes longer than a millisecond, all objects are frozen (gc.freeze), which excludes them from later
collections; and full collections run often, so that each has few objects to traverse.

A frozen object is still freed with its last reference. Only a reference cycle of frozen objects would leak,
so objects that end while the proxy serves break their own cycles, as connections do.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

THRESHOLDS: Final = (1500, 0, 0)
"""Allocations before a collection of generation 0, such collections before one of generation 1, and those
before a full one. Every third is full: it comes after some 4,500 objects that have not been freed, and by
default after some 80,000. Clients determine how many there are, by connections and by requests in flight: the
collector takes up to a microsecond for each. Fewer allocations would have it traverse the requests in flight
each time that their number varies.
"""
FREEZE_SECONDS: Final = 0.001
"""Freeze after a full collection that took longer. Requests wait during a collection."""
FULL_GENERATION: Final = 2
"""A collection of this generation is a full one."""


class GarbageCollection:
    """Freezes all objects whenever a full collection took too long."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock: Final = clock
        self._started_at = 0.0

    def start(self) -> None:
        """Freeze all objects that exist, and watch collections from now on."""
        gc.set_threshold(*THRESHOLDS)
        gc.callbacks.append(self._on_collection)
        gc.freeze()
        # Python skips full collections until there are a quarter as many new objects as the last one has
        # left. This one has nothing to traverse, and leaves none.
        gc.collect()

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] != FULL_GENERATION:
            return
        if phase == "start":
            self._started_at = self._clock()
        elif self._clock() - self._started_at > FREEZE_SECONDS:
            gc.freeze()


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection while many long-lived objects are created, then freeze them (gc.freeze): later
    collections do not walk them.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
