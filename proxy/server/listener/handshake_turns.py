"""HandshakeTurns: starts few TLS handshakes in one turn of the event loop.

The first step of a handshake takes up to a few milliseconds, while all other connections wait. Many clients
that connect at once would otherwise be served in a single turn.
"""

import asyncio
from collections import deque
from typing import Final

STARTED_AT_ONCE: Final = 2


class HandshakeTurns:
    """Of one listener. Handshakes start in the order in which their clients' first bytes have arrived."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._waiting: Final[deque[asyncio.Future[None]]] = deque()
        self._running = False

    async def take(self) -> None:
        """Wait until a handshake may start."""
        turn = self._loop.create_future()
        self._waiting.append(turn)
        if not self._running:
            self._running = True
            self._loop.call_soon(self._start_some)
        await turn

    def _start_some(self) -> None:
        started = 0
        while self._waiting and started < STARTED_AT_ONCE:
            turn = self._waiting.popleft()
            if not turn.done():  # cancelled: its time is up
                turn.set_result(None)
                started += 1
        self._running = len(self._waiting) > 0
        if self._running:
            self._loop.call_soon(self._start_some)
