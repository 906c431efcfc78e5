"""Yielder: divides long work on requests, so that other connections have turns of the event loop in between.

All pieces of work share what may be done in one turn, and clients get it in turn. Otherwise a client with a
hundred connections would have a hundred times as much done before the others are served.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, TypeVar

from proxy.quota.identity import ClientKey

T = TypeVar("T")

STEPS: Final = 64
"""Steps of all work in one turn of the event loop. A step takes up to 5 microseconds, so other connections
wait for a third of a millisecond; more turns would add their own cost to the work.
"""
GRANT: Final = 16
"""Steps that a piece of work may do before others have their turn."""
SLICE: Final = 16
"""Items in a step of work that takes less than a microsecond for each."""
NO_CLIENT: Final[ClientKey] = ("", "")
"""The key of work that no client requested, such as the console's."""


class LoopTurns:
    """The turns of one event loop: gives out STEPS in each, GRANT at a time. Clients have turns in the order
    of their requests, and within a client its pieces of work.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop: Final = loop
        self._left = STEPS // GRANT
        """Grants that are left in this turn."""
        self._waiting: Final[dict[ClientKey, deque[asyncio.Future[None]]]] = {}
        """The pieces of work that wait, by client, in the order of their turns."""
        self._armed = False

    async def grant(self, client: ClientKey) -> None:
        """Return when GRANT steps may be done for this client."""
        self._arm()
        if self._left > 0 and not self._waiting:
            self._left -= 1
            return
        turn = self.loop.create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        await turn

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self.loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._armed = False
        self._left = STEPS // GRANT
        while self._waiting and self._left > 0:
            client = next(iter(self._waiting))
            turns = self._waiting.pop(client)
            turn = turns.popleft()
            if turns:
                self._waiting[client] = turns
            if not turn.done():  # cancelled: the connection is over
                turn.set_result(None)
                self._left -= 1
        if self._left < STEPS // GRANT:
            self._arm()


_turns: LoopTurns | None = None
"""The turns of the process's event loop; another event loop gets new ones."""


def loop_turns() -> LoopTurns:
    """The turns of the running event loop."""
    global _turns
    loop = asyncio.get_running_loop()
    if _turns is None or _turns.loop is not loop:
        _turns = LoopTurns(loop)
    return _turns


class Yielder:
    """Counts the steps of one piece of work."""

    def __init__(self, client: ClientKey = NO_CLIENT) -> None:
        """`client`: the one that requested the work, and whose turns it uses."""
        self._client: Final = client
        self._turns: LoopTurns | None = None
        self._left = 0

    async def step(self) -> None:
        """Count a step; wait for a turn of the event loop if it is due."""
        if self._left == 0:
            if self._turns is None:
                self._turns = loop_turns()
            await self._turns.grant(self._client)
            self._left = GRANT
        self._left -= 1

    async def slices(self, items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
        """Iterate over items in slices of SLICE; each slice is a step."""
        for start in range(0, len(items), SLICE):
            await self.step()
            yield items[start : start + SLICE]

    async def free(self, *done_with: list[Any] | dict[Any, Any]) -> None:
        """Empty these, SLICE items in a step: otherwise one turn frees all objects of a large request."""
        for items in done_with:
            while items:
                await self.step()
                if isinstance(items, dict):
                    for _ in range(min(SLICE, len(items))):
                        items.popitem()
                else:
                    del items[-SLICE:]
