"""HandshakeTurns: takes the steps of TLS handshakes one at a time, with pauses.

A step of a handshake takes up to a millisecond of the event loop, while all other connections wait. If many
clients connect at once, or continue many handshakes at the same moment, the loop would work on little else
until all of them are served.

Any step can be the expensive one: the server's signature follows the client's first hello in TLS 1.3, or its
second one if the client so chooses; in TLS 1.2, the key exchange comes after it. After the last step, the
proxy opens the connection.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import Final

PAUSE_SECONDS: Final = 0.001
"""The next step is taken so much later, and other connections have their turns. Most handshakes have two
steps, so a listener makes up to 500 in a second. Both together take 0.5 ms with a key on an elliptic curve,
and about three times that with RSA.
"""


class HandshakeTurns:
    """The turns of one listener. Sources have turns in the order in which their clients' bytes have arrived,
    so that a storm from one source delays the others by one step. A source is an IPv4 address, or an IPv6
    network of 64 bits, of which one host can have all addresses.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._waiting: Final[dict[str, deque[Callable[[], bool]]]] = {}
        """By source, in the order of their turns."""
        self._running = False
        self._next_at = 0.0

    def ask(self, address: str, take: Callable[[], bool]) -> None:
        """Call `take` when the client at this address has its turn; it returns whether it used the turn."""
        self._waiting.setdefault(_source(address), deque()).append(take)
        if not self._running:
            self._running = True
            self._loop.call_at(self._next_at, self._give_one)

    async def turn(self, address: str) -> None:
        """Wait for the turn of a client at this address."""
        given = self._loop.create_future()

        def take() -> bool:
            awaited = not given.done()  # otherwise it is cancelled: its time is up
            if awaited:
                given.set_result(None)
            return awaited

        self.ask(address, take)
        await given

    def _give_one(self) -> None:
        self._running = False
        for source in list(self._waiting):
            if self._give_to(source):
                break
        self._next_at = self._loop.time() + PAUSE_SECONDS
        if self._waiting:
            self._running = True
            self._loop.call_at(self._next_at, self._give_one)

    def _give_to(self, source: str) -> bool:
        """Give a turn to a source; False if none of its clients uses it."""
        turns = self._waiting.pop(source)
        while turns:
            take = turns.popleft()
            if turns:
                # The last of the sources: before the call, which may ask for another turn.
                self._waiting[source] = turns
            if take():
                return True
            turns = self._waiting.pop(source, turns)
        return False


def _source(address: str) -> str:
    if ":" not in address:
        return address
    ip = IPv6Address(address)
    return f"{int(ip) >> 64:x}::/64" if ip.ipv4_mapped is None else str(ip.ipv4_mapped)
