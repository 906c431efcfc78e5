"""HandshakeTurns: starts TLS handshakes one at a time, with pauses between them.

A handshake takes up to a few milliseconds of the event loop, while all other connections wait. If many
clients connect at once, the loop would work on little else until all of them are served.
"""

import asyncio
from collections import deque
from typing import Final

PAUSE_SECONDS: Final = 0.002
"""The next handshake starts so much later, and other connections have their turns: a listener starts 500 in a
second. A handshake takes 0.5 ms with a key on an elliptic curve, and about three times that with RSA.
"""


class HandshakeTurns:
    """The turns of one listener. Addresses have turns in the order in which their clients' first bytes have
    arrived, so that a storm from one address delays the others by one handshake.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._waiting: Final[dict[str, deque[asyncio.Future[None]]]] = {}
        """By address, in the order of their turns."""
        self._running = False
        self._next_at = 0.0

    async def take(self, address: str) -> None:
        """Wait until the handshake of a client at this address may start."""
        turn = self._loop.create_future()
        self._waiting.setdefault(address, deque()).append(turn)
        if not self._running:
            self._running = True
            self._loop.call_at(self._next_at, self._start_one)
        await turn

    def _start_one(self) -> None:
        self._running = False
        started = False
        while self._waiting and not started:
            address = next(iter(self._waiting))
            turns = self._waiting.pop(address)
            turn = turns.popleft()
            if turns:
                self._waiting[address] = turns
            if not turn.done():  # else cancelled: its time is up
                turn.set_result(None)
                started = True
        self._next_at = self._loop.time() + PAUSE_SECONDS
        if self._waiting:
            self._running = True
            self._loop.call_at(self._next_at, self._start_one)
