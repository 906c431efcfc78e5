"""ReadTurns: how many requests all connections of a process read in one turn of the event loop.

One read from a socket may bring more than a thousand small requests, and a turn of the event loop may read
many sockets. The responses to others wait meanwhile.
"""

from typing import Final, final

from mypy_extensions import i64 as native

FREE_REQUESTS: Final[native] = 8
"""Requests that a connection reads at once in any case: most clients send no more ahead."""
REQUESTS: Final[native] = 128
"""Further requests of all connections at one time of the loop's clock, which has milliseconds. They take
about half a millisecond.
"""


@final
class ReadTurns:
    """Shared by the relays of a listener."""

    __slots__ = ("_left", "_now")

    def __init__(self) -> None:
        self._now = -1.0
        self._left: native = 0

    def take(self, now: float) -> bool:
        """Return whether a connection that has read FREE_REQUESTS may read another request now."""
        if now != self._now:
            self._now = now
            self._left = REQUESTS
        self._left -= 1
        return self._left >= 0
