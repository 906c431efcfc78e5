"""Members: the processes that share limits, and how far each has read the log."""

from heapq import heapify, heappop, heappush
from typing import Final, final

LEASE_SECONDS: Final = 2.4
"""After this long without a report, a process counts as gone. A process reports once a second at least, so a
lost or late report does not end its lease, and a killed process's share is in use within 3 seconds.
"""
MAX_STEP_SECONDS: Final = 1.0
"""Between two records, the log's time advances by at most this. Each process reports every second, so a
longer step is a jump of a broker's clock, or a time without processes: it must not end every lease at once.
"""
_HEAP_FACTOR: Final = 16
"""The maximum number of offsets for each process."""


@final
class Member:
    """One process, as its reports show it."""

    __slots__ = ("instance", "number", "read_to", "reported_at")

    def __init__(self, instance: str) -> None:
        self.instance: Final = instance
        self.number = 0
        """The number of its last report."""
        self.read_to = 0
        self.reported_at = 0.0
        """The time of its last report, on the log's clock."""


@final
class LogClock:
    """Seconds, from the timestamps that the broker gives to records (LogAppendTime); they never go back.

    The clocks of the processes are not used, so their skew has no effect.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._last_ms = -1

    def see(self, timestamp_ms: int) -> float:
        """Take a record's timestamp, in milliseconds since the epoch."""
        if self._last_ms >= 0:
            self.now += min(max((timestamp_ms - self._last_ms) / 1e3, 0.0), MAX_STEP_SECONDS)
        self._last_ms = timestamp_ms
        return self.now


@final
class Members:
    """The live processes."""

    def __init__(self) -> None:
        self._live: Final[dict[str, Member]] = {}
        """In the order of their last reports."""
        self._names: list[str] = []
        """Their names, sorted."""
        self._newer: Final[set[str]] = set()
        """The processes that write a newer format of reports than this one can read."""
        self._read: list[tuple[int, str]] = []
        """A heap of (read_to, name) of each process; read_by_all() removes entries that are out of date."""

    def repeated(self, instance: str, number: int) -> bool:
        """Whether this report of the process, or a later one, has been read before: a producer may send a
        report twice.
        """
        member = self._live.get(instance)
        return member is not None and number <= member.number

    def see(self, instance: str, number: int, read_to: int, now: float, newer: bool = False) -> bool:
        """Take a report's head; return whether its sender is new. `now` is the log's time."""
        member = self._live.get(instance)
        new = member is None
        if member is None:
            member = Member(instance)
            self._live[instance] = member
            self._names = sorted(self._live)
        else:
            del self._live[instance]
            self._live[instance] = member
        member.number = number
        if new or read_to > member.read_to:
            member.read_to = read_to
            self._note_read(member)
        if newer:
            self._newer.add(instance)
        else:
            self._newer.discard(instance)
        member.reported_at = now
        return new

    def _note_read(self, member: Member) -> None:
        heappush(self._read, (member.read_to, member.instance))
        if len(self._read) > _HEAP_FACTOR * len(self._live) + _HEAP_FACTOR:
            self._read = [(each.read_to, each.instance) for each in self._live.values()]
            heapify(self._read)

    def leave(self, instance: str) -> bool:
        """Remove a process that stops; return whether it was live."""
        left = self._live.pop(instance, None) is not None
        self._names = sorted(self._live)
        self._newer.discard(instance)
        return left

    def expire(self, now: float) -> list[str]:
        """Remove those whose lease has ended; return their names."""
        gone: list[str] = []
        for member in self._live.values():
            if now - member.reported_at <= LEASE_SECONDS:
                break
            gone.append(member.instance)
        for instance in gone:
            self.leave(instance)
        return gone

    def names(self) -> list[str]:
        """The live processes in the same order everywhere; read-only."""
        return self._names

    def ages(self, now: float) -> dict[str, float]:
        """Return the seconds since the last report of each live process. `now` is the log's time."""
        ages: dict[str, float] = {}
        for name in self._names:
            ages[name] = now - self._live[name].reported_at
        return ages

    def newer(self) -> list[str]:
        """Those that write a newer format."""
        return sorted(self._newer)

    def __contains__(self, instance: str) -> bool:
        return instance in self._live

    def __len__(self) -> int:
        return len(self._live)

    def read_by_all(self) -> int:
        """Every live process has read the records below this offset; 0 if there is none."""
        heap = self._read
        while heap:
            read_to, instance = heap[0]
            member = self._live.get(instance)
            if member is not None and member.read_to == read_to:
                return read_to
            heappop(heap)
        return 0
