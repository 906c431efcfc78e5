"""Yielder: divides long work on requests, so that other connections have turns of the event loop in between.

All pieces of work share what may be done in one turn. Otherwise a client with a hundred connections would
have a hundred times as much done before the others are served.
"""

import asyncio
from collections import deque
from typing import Final

STEPS: Final = 256
"""Steps of all work in one turn of the event loop. A step takes microseconds, so other connections wait for a
millisecond or two; more turns would add their own cost to the work.
"""
GRANT: Final = 32
"""Steps that a piece of work may do before others have their turn."""


class LoopTurns:
    """The turns of one event loop: gives out STEPS in each, GRANT at a time, in the order of the requests."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop: Final = loop
        self._left = STEPS // GRANT
        """Grants that are left in this turn."""
        self._waiting: Final[deque[asyncio.Future[None]]] = deque()
        self._armed = False

    async def grant(self) -> None:
        """Return when GRANT steps may be done."""
        self._arm()
        if self._left > 0 and not self._waiting:
            self._left -= 1
            return
        turn = self.loop.create_future()
        self._waiting.append(turn)
        await turn

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self.loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._armed = False
        self._left = STEPS // GRANT
        while self._waiting and self._left > 0:
            turn = self._waiting.popleft()
            if not turn.done():  # cancelled: the connection is over
                turn.set_result(None)
                self._left -= 1
        if self._left < STEPS // GRANT:
            self._arm()


_turns: LoopTurns | None = None
"""Those of the process's event loop."""


def loop_turns() -> LoopTurns:
    """The turns of the running event loop."""
    global _turns
    loop = asyncio.get_running_loop()
    if _turns is None or _turns.loop is not loop:
        _turns = LoopTurns(loop)
    return _turns


class Yielder:
    """Counts the steps of one piece of work."""

    def __init__(self) -> None:
        self._turns: LoopTurns | None = None
        self._left = 0

    async def step(self) -> None:
        """Count a step; wait for a turn of the event loop if it is due."""
        if self._left == 0:
            if self._turns is None:
                self._turns = loop_turns()
            await self._turns.grant()
            self._left = GRANT
        self._left -= 1
