"""InForce: which part of a limit a process may use, while not all have read what changes it."""

from typing import Final, final


@final
class InForce:
    """The parts of a limit that a process has by successive prefixes of the log.

    Each process may use the least of its parts over the prefixes from the one that all live processes have
    read to the one that it has read itself: a part that shrinks holds when it is read, and one that grows
    holds when all have read it.

    The sum over all processes is at most the whole: the prefix that the slowest of them has read is in the
    interval of each, and the parts by one prefix add up to one.
    """

    __slots__ = ("_parts", "_since")

    def __init__(self) -> None:
        self._since: Final[list[int]] = [-1]
        """Ascending offsets; the part at the same index holds from the record at that offset on."""
        self._parts: Final[list[float]] = [0.0]

    def copy(self) -> "InForce":
        other = InForce()
        other._since[:] = self._since
        other._parts[:] = self._parts
        return other

    def take(self, offset: int, part: float) -> None:
        """The record at `offset` gives the process this part, 0.0 to 1.0."""
        if self._since[-1] == offset:
            self._parts[-1] = part
        elif self._parts[-1] != part:
            self._since.append(offset)
            self._parts.append(part)

    def least(self, read_by_all: int) -> float:
        """The part that the process may use. All live processes have read below `read_by_all`."""
        since = self._since
        done = 0
        while done + 1 < len(since) and since[done + 1] < read_by_all:
            done += 1
        if done > 0:
            del since[:done]
            del self._parts[:done]
        return min(self._parts)
