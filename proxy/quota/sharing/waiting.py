"""WaitingConnections: how many connections wait for a bucket, without the moments between two requests."""

import math
from typing import Final, final

LONGEST_PAUSE: Final = 1.0
"""A connection counts as waiting for at most this long after a wait, because it is about to send its next
request, which will wait too. A real producer may need most of a second for that on a busy machine.
"""
PAUSES: Final = 1.6
"""A connection counts for this multiple of the longest recent pause. If every look at the bucket finds a
waiting connection, the pause is the interval of the looks, and the second look that finds none shows that all
have gone.
"""
_DECAY_SECONDS: Final = 2.0
"""The time constant with which a long pause is forgotten."""
_RETURN_SECONDS: Final = 2.0
"""If no connection has waited for this long, one that then waits is new demand, and not a pause."""


@final
class WaitingConnections:
    """The connections that wait for a bucket, by looks at it at intervals of some tenths of a second.

    count: the most that waited in the last second; 0 if none has waited for longer than they usually pause.
    """

    __slots__ = ("_most_at", "_pause", "_waited_at", "count")

    def __init__(self) -> None:
        self.count = 0
        self._most_at = 0.0
        """When this number of connections waited."""
        self._waited_at = -math.inf
        """When a look last found a waiting connection."""
        self._pause = LONGEST_PAUSE / PAUSES
        """The longest time lately between two looks that found a waiting connection, in seconds."""

    def see(self, waiting: int, now: float) -> None:
        """Take the number of connections that wait now."""
        if waiting > 0:
            self._learn(now - self._waited_at)
            self._waited_at = now
            if waiting >= self.count or now - self._most_at > LONGEST_PAUSE:
                self.count = waiting
                self._most_at = now
        elif now - self._waited_at > min(self._pause * PAUSES, LONGEST_PAUSE):
            self.count = 0

    def _learn(self, pause: float) -> None:
        if pause > _RETURN_SECONDS:
            return
        if pause > self._pause:
            self._pause = pause
        else:
            self._pause += (pause - self._pause) * pause / (pause + _DECAY_SECONDS)
