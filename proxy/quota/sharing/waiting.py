"""WaitingConnections: how many connections wait for a bucket, without the moments between two requests."""

import math
from typing import Final, final

LONGEST_PAUSE: Final = 1.0
"""A connection counts as waiting for at most this long after a wait, because it is about to send its next
request, which will wait too. A real producer may need most of a second for that on a busy machine.
"""
PAUSES: Final = 1.45
"""A connection counts for this multiple of the longest recent pause. If every look finds as many connections,
the pause is the interval of the looks, and the second look that finds fewer shows that the others have gone;
after a pause of two intervals, the third one does.
"""
_DECAY_SECONDS: Final = 2.0
"""The time constant with which a long pause is forgotten."""
_RETURN_SECONDS: Final = 2.0
"""If no connection has waited for this long, one that then waits is new demand, and not a pause."""


@final
class WaitingConnections:
    """The connections that wait for a bucket, by looks at it at intervals of some tenths of a second.

    count: the most that a look has found lately: for as long as the connections usually pause. It is 0 if no
    look has found any for longer than usual, although fewer connections than the most are found more often.
    """

    __slots__ = ("_found", "_pause", "_pause_of_all", "_waited_at", "count")

    def __init__(self) -> None:
        self.count = 0
        self._found: Final[list[tuple[float, int]]] = []
        """When looks found connections, and how many: those after which no look has found as many."""
        self._waited_at = -math.inf
        """When a look last found any."""
        self._pause = LONGEST_PAUSE / PAUSES
        """The longest time lately between two looks that found as many connections, in seconds."""
        self._pause_of_all = self._pause
        """The same of two looks that found any."""

    def see(self, waiting: int, now: float) -> None:
        """Take the number of connections that wait now."""
        found = self._found
        while found and now - found[0][0] > _RETURN_SECONDS:
            del found[0]
        if waiting > 0:
            while found and found[-1][1] < waiting:
                found.pop()
            self._pause = _learned(self._pause, now - (found[-1][0] if found else self._waited_at))
            self._pause_of_all = _learned(self._pause_of_all, now - self._waited_at)
            if found and found[-1][1] == waiting:
                found.pop()
            found.append((now, waiting))
            self._waited_at = now
        self.count = 0
        if self._waited_at < now - min(self._pause_of_all * PAUSES, LONGEST_PAUSE):
            return
        lately = now - min(self._pause * PAUSES, LONGEST_PAUSE)
        for at, many in found:
            if at >= lately:
                self.count = many
                break


def _learned(before: float, pause: float) -> float:
    """The longest pause lately, after one more."""
    if pause > _RETURN_SECONDS:
        return before
    if pause > before:
        return pause
    return before + (pause - before) * pause / (pause + _DECAY_SECONDS)
