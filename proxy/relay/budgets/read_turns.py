"""ReadTurns: how many requests, or responses, all connections read in one turn of the event loop.

One read from a socket may bring more than a thousand small requests or responses, and a turn of the event
loop may read many sockets. All other connections wait meanwhile.
"""

from collections.abc import Callable
from typing import Final, final

from mypy_extensions import i64 as native

FREE_FRAMES: Final[native] = 2
"""Requests, or responses, that a connection reads at once in any case. A client may have many connections,
and a turn may read each of them several times.
"""
FRAMES: Final[native] = 80
"""The further requests, or responses, that all connections read in one turn, and at one time of the loop's
clock, which has milliseconds. They take about half a millisecond.
"""
FEW_FRAMES: Final[native] = 40
"""A turn that reads at most this many is short. ReadTurns does not wait for its end, because a call of the
event loop costs CPU time. If the clock advances in such a turn, it may read FEW_FRAMES more than others.
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
    """Shared by all relays of a process; one for each direction."""

    __slots__ = ("_in_turn", "_left", "_next_turn", "_now")

    def __init__(self, next_turn: Callable[[Callable[[], None]], object] | None) -> None:
        """`next_turn`: calls a function in the next turn of the event loop (call_soon). None if each time of
        the clock is one turn; the clock of a real loop advances while a turn lasts.
        """
        self._next_turn: Final = next_turn
        self._in_turn = False
        """Whether the end of the turn is awaited."""
        self._now = -1.0
        self._left: native = 0

    def take(self, frames: native, now: float) -> bool:
        """Return whether a connection that has read FREE_FRAMES may read on now; `frames`: how much it has
        read since.
        """
        if now != self._now and not self._in_turn:
            self._now = now
            self._left = FRAMES
        self._left -= frames
        if self._left < FRAMES - FEW_FRAMES and not self._in_turn and self._next_turn is not None:
            self._in_turn = True
            self._next_turn(self._end_turn)
        return self._left >= 0

    def _end_turn(self) -> None:
        self._in_turn = False
