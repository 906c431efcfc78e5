"""LoopLag: how late the event loop runs what is due."""

import asyncio
from bisect import bisect_left
from collections.abc import Callable
from time import thread_time
from typing import Final

INTERVAL_SECONDS: Final = 0.1
"""The interval of the timer while the event loop works."""
IDLE_INTERVAL_SECONDS: Final = 1.0
"""The longest interval while the event loop is idle: each timer wakes the process."""
IDLE_PART: Final = 0.005
"""The event loop is idle if its thread uses at most this part of an interval as CPU time."""
LATE_SECONDS: Final = 0.01
"""A delay over this is not that of an idle event loop, even if it used no CPU time: the machine lacks CPU, or
a system call blocks.
"""
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds of the counts, in seconds."""


class LoopLag:
    """Counts the delays of a timer, by size."""

    def __init__(self, cpu_seconds: Callable[[], float] = thread_time) -> None:
        """`cpu_seconds`: returns the CPU time of the event loop's thread."""
        self._cpu_seconds: Final = cpu_seconds
        self.counts: Final = [0] * (len(BOUNDS) + 1)
        """The number of delays up to each of BOUNDS, and of longer ones."""
        self.total_seconds = 0.0

    async def run(self) -> None:
        """Measure the delays of the timer until cancelled."""
        time = asyncio.get_running_loop().time
        interval = INTERVAL_SECONDS
        while True:
            due = time() + interval
            used = self._cpu_seconds()
            await asyncio.sleep(interval)
            delay = time() - due
            self.note(delay)
            interval = next_interval(interval, self._cpu_seconds() - used, delay)

    def note(self, delay: float) -> None:
        """Count a delay, in seconds; a timer that is early counts as 0."""
        delay = max(delay, 0.0)
        self.counts[bisect_left(BOUNDS, delay)] += 1
        self.total_seconds += delay


def next_interval(interval: float, used: float, delay: float) -> float:
    """Return the interval that follows one in which the event loop's thread used so many seconds of CPU time,
    and at whose end the timer was late by `delay`.
    """
    if delay > LATE_SECONDS or used > IDLE_PART * interval:
        return INTERVAL_SECONDS
    return min(2.0 * interval, IDLE_INTERVAL_SECONDS)
