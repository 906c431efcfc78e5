"""MeasuredReads: the reads from a client whose times are measured, with the request of the last one."""

from time import monotonic
from typing import Final, final

from mypy_extensions import i64 as native

from proxy.relay.exchange import Exchange

MEASURED_EVERY: Final = 31
"""One in this many reads from a client is measured, because to read the clock costs a hundredth of what a
Produce request costs. A prime number, so that the measured reads do not follow a pattern of the client.
"""
LOOP_CLOCK_SECONDS: Final = 0.002
"""How far the event loop's clock may be behind when it calls for an event: it counts milliseconds, and Linux
may return the time of the last tick.
"""


@final
class MeasuredReads:
    """Counts the reads of one connection."""

    __slots__ = ("_left", "_seconds", "pending")

    def __init__(self) -> None:
        self._left: native = 2
        """The number of reads until one is measured. The broker is not connected at the first read."""
        self.pending: Exchange | None = None
        """The request that has been measured, until its response has arrived."""
        self._seconds = 0.0
        """How long the proxy took to forward it."""

    def began(self, now: float) -> float:
        """Count a read; return the time of its event if it is measured, else 0.0."""
        self._left -= 1
        if self._left != 0:
            return 0.0
        self._left = MEASURED_EVERY
        return event_at(now)

    def forwarded(self, request: Exchange | None, began: float) -> None:
        """Note that a measured read, whose event was at `began`, has forwarded this request or none."""
        self.pending = request
        self._seconds = monotonic() - began

    def responded(self, began: float) -> float:
        """Note that the response has been forwarded, and the event was at `began`. Return the seconds for
        which the proxy had the request and the response.
        """
        self.pending = None
        return self._seconds + monotonic() - began


def event_at(now: float) -> float:
    """The time at which the event loop learned of the event that it calls for, `now` by its own clock. Events
    of other connections may have come first.
    """
    began = monotonic()
    latest = now + LOOP_CLOCK_SECONDS
    return began if began < latest else latest
