"""Yielder: gives the event loop a turn during long work."""

import asyncio
from typing import Final

STEPS: Final = 256
"""Steps between two turns of the event loop. A step takes microseconds, so other connections wait for a few
milliseconds at most; more turns would add their own cost to the work.
"""


class Yielder:
    """Counts the steps of one piece of work."""

    def __init__(self) -> None:
        self._steps = 0

    async def step(self) -> None:
        """Count a step; give the event loop a turn if it is due."""
        self._steps += 1
        if self._steps % STEPS == 0:
            await asyncio.sleep(0)
