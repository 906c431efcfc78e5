"""Counts the turns of the event loop while other work runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class TurnCount:
    """The number of turns so far."""

    def __init__(self) -> None:
        self.count = 0

    async def run(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)


@asynccontextmanager
async def counted_turns() -> AsyncIterator[TurnCount]:
    """Count the turns in the block."""
    turns = TurnCount()
    counting = asyncio.get_running_loop().create_task(turns.run())
    try:
        yield turns
    finally:
        counting.cancel()
