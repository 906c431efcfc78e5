"""InForce: the part of a limit that a process may use while others have not read the latest records."""

from typing import Final, final

PARTS_AT_MOST: Final = 64
"""If there are more, the earliest two become one: the smaller one applies. A process that reports without
reading would otherwise have the others remember all parts.
"""


@final
class InForce:
    """The parts of a limit that the log gives to a process. Each record may change them.

    A smaller part applies as soon as this process has read the record. A larger part applies when all live
    processes have read the record. So a process uses the smallest of its parts from the last record that all
    have read to the last record that it has read itself.

    The parts in use add up to at most the whole limit: each is at most the process's part as of the last
    record that all have read, and these parts add up to one.
    """

    __slots__ = ("_parts", "_settled", "_since")

    def __init__(self) -> None:
        self._since: Final[list[int]] = [-1]
        """Ascending offsets; the part at the same index holds from the record at that offset on."""
        self._parts: Final[list[float]] = [0.0]
        self._settled: Final[list[float]] = [0.0]
        """The parts without credit: those of all processes add up to one."""

    def copy(self) -> "InForce":
        other = InForce()
        other._since[:] = self._since
        other._parts[:] = self._parts
        other._settled[:] = self._settled
        return other

    def take(self, offset: int, part: float, settled: float) -> None:
        """The record at `offset` gives the process this part, 0.0 to about 1.1; without credit, `settled`."""
        if self._since[-1] == offset:
            self._parts[-1] = part
            self._settled[-1] = settled
        elif self._parts[-1] != part or self._settled[-1] != settled:
            self._since.append(offset)
            self._parts.append(part)
            self._settled.append(settled)
            if len(self._since) > PARTS_AT_MOST:
                self._parts[0] = min(self._parts[0], self._parts.pop(1))
                self._settled[0] = min(self._settled[0], self._settled.pop(1))
                del self._since[1]

    @property
    def next_offset(self) -> int:
        """The offset of the record that ends the earliest part; -1 if there is one part."""
        return self._since[1] if len(self._since) > 1 else -1

    def least(self, read_by_all: int) -> float:
        """The part that the process may use. All live processes have read below `read_by_all`."""
        if len(self._since) > 1:
            self._forget(read_by_all)
        return min(self._parts)

    def least_settled(self, read_by_all: int) -> float:
        """The part that the process may use while no record arrives: credit would be used again and again."""
        if len(self._since) > 1:
            self._forget(read_by_all)
        return min(self._settled)

    def grows(self, read_by_all: int) -> bool:
        """Whether a larger part applies now that all live processes have read below `read_by_all`."""
        before = min(self._parts)
        self._forget(read_by_all)
        return min(self._parts) > before

    def _forget(self, read_by_all: int) -> None:
        """Drop the parts before the last record that all have read."""
        since = self._since
        done = 0
        while done + 1 < len(since) and since[done + 1] < read_by_all:
            done += 1
        if done > 0:
            del since[:done]
            del self._parts[:done]
            del self._settled[:done]

    def __len__(self) -> int:
        return len(self._since)
