"""Python's collector of reference cycles, kept from holding the event loop.

A full collection walks everything that could be part of a cycle: with 100,000 quotas and 10,000 active
tenants that takes most of a second, and finds next to nothing. So whatever has once cost more than a moment
to walk is set aside (gc.freeze) and not walked again, and full collections come often enough to have little
to walk.

What is set aside still goes with its last reference. It would stay for good only as part of a cycle that
nobody takes apart, so what ends while the proxy serves takes its own cycles apart, as connections do.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

THRESHOLDS: Final = (700, 10, 2)
"""Objects made before the youngest are collected (Python's own figure); how often that happens before the
next generation is; how often that happens before all are, after some 20,000 objects.
"""
MOMENT_SECONDS: Final = 0.003
FULL: Final = 2


class GarbageCollection:
    """Sees to it that full collections are short."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock: Final = clock
        self._started_at = 0.0

    def start(self) -> None:
        """From now on, and all that is there is set aside."""
        gc.set_threshold(*THRESHOLDS)
        gc.callbacks.append(self._on_collection)
        gc.freeze()

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] != FULL:
            return
        if phase == "start":
            self._started_at = self._clock()
        elif self._clock() - self._started_at > MOMENT_SECONDS:
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
