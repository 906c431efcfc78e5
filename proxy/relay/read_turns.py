"""ReadTurns: how many requests, or responses, all connections read in one turn of the event loop.

One read from a socket may bring more than a thousand small requests or responses, and a turn of the event
loop may read many sockets. All other connections wait meanwhile.
"""

from typing import Final, final

from mypy_extensions import i64 as native

FREE_FRAMES: Final[native] = 2
"""Requests, or responses, that a connection reads at once in any case. A client may have many connections,
and a turn may read each of them several times.
"""
FRAMES: Final[native] = 80
"""Further ones of all connections at one time of the loop's clock, which has milliseconds. They take about
half a millisecond.
"""
PARTITIONS_SHIFT: Final[native] = 4
"""A message counts once more for each 16 partitions that are read in it: the number is shifted right by this.
"""
LARGE_BYTES: Final[native] = 32 << 10
"""A connection that has this much to read asks first whether the turn has read enough."""
PAUSE_SECONDS: Final = 0.001
"""How long a connection that may read no more waits: until the loop's clock has another time."""


@final
class ReadTurns:
    """Shared by the relays of a listener; one for each direction."""

    __slots__ = ("_left", "_now")

    def __init__(self) -> None:
        self._now = -1.0
        self._left: native = 0

    def take(self, frames: native, now: float) -> bool:
        """Return whether a connection that has read FREE_FRAMES may read on now; `frames`: how much it has
        read since.
        """
        if now != self._now:
            self._now = now
            self._left = FRAMES
        self._left -= frames
        return self._left >= 0
