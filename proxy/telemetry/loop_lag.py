"""LoopLag: how late the event loop runs what is due."""

import asyncio
from bisect import bisect_left
from typing import Final

INTERVAL_SECONDS: Final = 0.1
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds of the counts, in seconds."""


class LoopLag:
    """Counts the delays of a timer, by size."""

    def __init__(self) -> None:
        self.counts: Final = [0] * (len(BOUNDS) + 1)
        """By the bounds, and of longer delays."""
        self.total_seconds = 0.0

    async def run(self) -> None:
        """Measure until cancelled."""
        time = asyncio.get_running_loop().time
        while True:
            due = time() + INTERVAL_SECONDS
            await asyncio.sleep(INTERVAL_SECONDS)
            self.note(time() - due)

    def note(self, delay: float) -> None:
        """Count a delay, in seconds; a timer that is early counts as 0."""
        delay = max(delay, 0.0)
        self.counts[bisect_left(BOUNDS, delay)] += 1
        self.total_seconds += delay
