"""How many connections each worker of a host has, in memory that all workers share.

All workers accept at the same sockets, and the kernel wakes all of them for a connection. The one that is
awake first would get most connections. So a worker that has more of them than another one leaves the next to
it (see Acceptor). This takes no message, and a worker that does not run delays a connection only by
GIVE_WAY_SECONDS.
"""

import mmap
import os
import tempfile
from typing import Final, final

NOT_ACCEPTING: Final = -1
"""In place of a count: the place has no process, or its process accepts no connection now."""
ITEM: Final = "q"
ITEM_BYTES: Final = 8
"""A count as a C integer (the struct module's code), and its size. The processor writes it in one step."""
PLACES_PER_WORKER: Final = 4
"""While workers are replaced, one number may have several processes: one that starts, and those that drain.
"""
AHEAD_PART: Final = 16
"""A worker leaves connections to another one that has fewer, by more than one in this many: in a burst, each
accepts several at a time.
"""


@final
class ConnectionCounts:
    """The supervisor's side: gives each process a place for its count."""

    def __init__(self, workers: int) -> None:
        count = workers * PLACES_PER_WORKER
        with tempfile.TemporaryFile(buffering=0) as file:
            file.truncate(count * ITEM_BYTES)
            self.descriptor: Final = os.dup(file.fileno())
            """The descriptor of the memory, for WorkerCount; a process inherits it only if it is passed
            explicitly.
            """
        self._counts: Final = _shared(self.descriptor)
        self._free: Final = list(range(count))
        for place in range(count):
            self._counts[place] = NOT_ACCEPTING

    def take(self) -> int:
        """A place for a process that starts; -1 if none is left."""
        return self._free.pop() if self._free else -1

    def give_back(self, place: int) -> None:
        """Take back the place of a process that has ended."""
        if place >= 0:
            self._counts[place] = NOT_ACCEPTING
            self._free.append(place)


@final
class WorkerCount:
    """A worker's side. Fulfils Balance."""

    def __init__(self, descriptor: int, place: int) -> None:
        """Take the descriptor, and close it. Without a place (-1), leave no connection to others."""
        self._counts: Final = _shared(descriptor)
        os.close(descriptor)
        self._place: Final = place
        self._drains = False

    def show(self, connections: int) -> None:
        """Tell the other workers how many connections this one has."""
        if self._place >= 0 and not self._drains:
            self._counts[self._place] = connections

    def full(self) -> None:
        """Tell the other workers that this one accepts no connection now."""
        self.show(NOT_ACCEPTING)

    def drain(self) -> None:
        """Leave all connections to the others, as long as there is another one."""
        self.full()
        self._drains = True

    def others_first(self, connections: int) -> bool:
        """Whether another worker has fewer connections than this one."""
        if self._place < 0:
            return False
        counts = [count for count in self._counts if count >= 0]
        if self._drains or not counts:
            return bool(counts)
        fewest = min(counts)
        return connections > fewest + fewest // AHEAD_PART


def _shared(descriptor: int) -> memoryview:
    # A count is written and read at once, because it is aligned.
    return memoryview(mmap.mmap(descriptor, 0)).cast(ITEM)
