"""LargeFrames: the memory of the process for Produce requests that are too large for a bound by connection.

While quotas reject, a request has to be whole before a partition can be cut out of it. Requests up to
MAX_BUFFERED_FRAME_BYTES are bounded by connection. Larger ones share this memory, as requests do with Kafka's
queued.max.request.bytes: a request reserves its whole size before more of it is read, or waits in line. It
never holds a part while it waits for the rest, so no two requests wait for each other.
"""

from typing import Final, final

LARGE_FRAMES_BYTES: Final = 256 << 20
RETRY_SECONDS: Final = 0.02
"""The first request in line asks again after this time, the second after twice this time, and so on."""
MAX_RETRY_SECONDS: Final = 5.0


@final
class LargeFrames:
    """Grants memory in the order in which requests ask for it, so that none waits forever."""

    def __init__(self, capacity: int = LARGE_FRAMES_BYTES) -> None:
        self._capacity: Final = capacity
        self.reserved = 0
        """Bytes that are reserved now."""
        self._line: Final[dict[int, None]] = {}
        """Tickets of the requests that wait, in their order."""
        self._last_ticket = 0

    @property
    def wanted(self) -> bool:
        """Whether a request waits."""
        return len(self._line) > 0

    def join(self) -> int:
        """Return a ticket at the end of the line."""
        self._last_ticket += 1
        self._line[self._last_ticket] = None
        return self._last_ticket

    def leave(self, ticket: int) -> None:
        """Remove a ticket: its request waits no longer."""
        self._line.pop(ticket, None)

    def reserve(self, ticket: int, size: int) -> bool:
        """Reserve memory for the first in line; returns whether it was its turn and there was enough.

        A request that is larger than all of the memory is granted when nothing else is reserved.
        """
        if ticket != next(iter(self._line)):
            return False
        if self.reserved > 0 and self.reserved + size > self._capacity:
            return False
        self.leave(ticket)
        self.reserved += size
        return True

    def give_back(self, size: int) -> None:
        self.reserved -= size

    def retry_seconds(self, ticket: int) -> float:
        """When this request should ask again: the later, the more requests are before it, so that a long line
        costs little time.
        """
        places = ticket - next(iter(self._line)) + 1
        return min(places * RETRY_SECONDS, MAX_RETRY_SECONDS)


@final
class LargeFrame:
    """What one connection has of this memory: one frame's worth at a time."""

    __slots__ = ("_frames", "_ticket", "size")

    def __init__(self, frames: LargeFrames) -> None:
        self._frames: Final = frames
        self._ticket = 0
        """The connection's place in line; 0 for none."""
        self.size = 0
        """Bytes that the connection has reserved."""

    @property
    def wanted(self) -> bool:
        """Whether others wait for memory."""
        return self._frames.wanted

    @property
    def retry_seconds(self) -> float:
        """When to call reserve() again."""
        return RETRY_SECONDS if self._ticket == 0 else self._frames.retry_seconds(self._ticket)

    def reserve(self, size: int) -> bool:
        """Reserve memory for a frame; returns whether it is granted. The last frame's is given back first."""
        if self.size > 0:
            return False
        if self._ticket == 0:
            self._ticket = self._frames.join()
        if not self._frames.reserve(self._ticket, size):
            return False
        self._ticket = 0
        self.size = size
        return True

    def leave(self) -> None:
        """Wait no longer."""
        if self._ticket != 0:
            self._frames.leave(self._ticket)
            self._ticket = 0

    def give_back(self) -> None:
        """Give back what is reserved."""
        if self.size > 0:
            self._frames.give_back(self.size)
            self.size = 0
