"""HandshakeTurns: starts TLS handshakes one at a time, with pauses, and few of them are unfinished.

A handshake takes up to a few milliseconds of the event loop, while all other connections wait. If many
clients connect at once, the loop would work on little else until all of them are served.

The handshake starts with the client's hello, but most of its time goes into what the client sends next:
the second hello of TLS 1.3, or the key exchange of TLS 1.2. A client could start many handshakes, and send
the second part of all of them at once.
"""

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import AsyncIterator
from ipaddress import IPv6Address
from typing import Final

PAUSE_SECONDS: Final = 0.002
"""The next handshake starts so much later, and other connections have their turns: a listener starts 500 in a
second. A handshake takes 0.5 ms with a key on an elliptic curve, and about three times that with RSA.
"""
UNFINISHED_AT_MOST: Final = 32
"""The most unfinished handshakes of one source. They take at most 16 ms together, or 48 ms with RSA."""
OLD_SECONDS: Final = 1.0
"""A handshake that has taken so long ends if its source has no room for another one. Until then, the other
one waits.
"""


class Unfinished(OSError):
    """The handshake ended because its source started others."""


class _Turn:
    """The turn of one handshake."""

    def __init__(self, loop: asyncio.AbstractEventLoop, client: socket.socket) -> None:
        self.given: Final[asyncio.Future[None]] = loop.create_future()
        self.client: Final = client
        self.began_at = 0.0
        self.ended_early = False


class HandshakeTurns:
    """The turns of one listener. Sources have turns in the order in which their clients' first bytes have
    arrived, so that a storm from one source delays the others by one handshake. A source is an IPv4 address,
    or an IPv6 network of 64 bits, of which one host can have all addresses.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._waiting: Final[dict[str, deque[_Turn]]] = {}
        """By source, in the order of their turns."""
        self._unfinished: Final[dict[str, dict[_Turn, None]]] = {}
        """By source, the oldest first."""
        self._running = False
        self._next_at = 0.0

    @contextlib.asynccontextmanager
    async def turn(self, address: str, client: socket.socket) -> AsyncIterator[None]:
        """Wait until the handshake of a client at this address may start, and count it until the block ends.
        The block raises Unfinished instead of another OSError if the handshake had to end for others.
        """
        source = _source(address)
        turn = _Turn(self._loop, client)
        self._waiting.setdefault(source, deque()).append(turn)
        if not self._running:
            self._running = True
            self._loop.call_at(self._next_at, self._start_one)
        try:
            await turn.given
            yield
        except OSError:
            if turn.ended_early:
                others = f"its source started {UNFINISHED_AT_MOST} others"
                raise Unfinished(f"not finished after {OLD_SECONDS:g} s, and {others}") from None
            raise
        finally:
            self._end(source, turn)

    def _start_one(self) -> None:
        self._running = False
        now = self._loop.time()
        for source in list(self._waiting):
            if self._has_room(source, now) and self._start_of(source, now):
                break
        self._next_at = now + PAUSE_SECONDS
        if self._waiting:
            self._running = True
            self._loop.call_at(self._next_at, self._start_one)

    def _start_of(self, source: str, now: float) -> bool:
        """Start the next handshake of a source; False if none of them is awaited any more."""
        turns = self._waiting.pop(source)
        while turns:
            turn = turns.popleft()
            if turn.given.done():
                continue  # cancelled: its time is up
            if turns:
                self._waiting[source] = turns
            turn.began_at = now
            self._unfinished.setdefault(source, {})[turn] = None
            turn.given.set_result(None)
            return True
        return False

    def _has_room(self, source: str, now: float) -> bool:
        """Whether a source may have one more unfinished handshake; its oldest one may end for it."""
        unfinished = self._unfinished.get(source)
        if unfinished is None or len(unfinished) < UNFINISHED_AT_MOST:
            return True
        oldest = next(iter(unfinished))
        if now - oldest.began_at < OLD_SECONDS:
            return False
        oldest.ended_early = True
        with contextlib.suppress(OSError):
            oldest.client.shutdown(socket.SHUT_RDWR)
        self._end(source, oldest)
        return True

    def _end(self, source: str, turn: _Turn) -> None:
        unfinished = self._unfinished.get(source)
        if unfinished is not None and unfinished.pop(turn, turn) is None and not unfinished:
            del self._unfinished[source]


def _source(address: str) -> str:
    if ":" not in address:
        return address
    ip = IPv6Address(address)
    return f"{int(ip) >> 64:x}::/64" if ip.ipv4_mapped is None else str(ip.ipv4_mapped)
