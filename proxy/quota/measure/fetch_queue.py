"""FetchQueue: the bytes of a bucket that fetches in flight may bring, and the fetches that wait for some.

A response is charged when it arrives. Between a fetch and its response, other fetches would find the same
tokens. So each fetch reserves the bytes that it is expected to bring, and a fetch is forwarded only if the
bucket has tokens beyond those that are reserved, and beyond those for the fetches ahead of it in the line.

The line is ordered as in start-time fair queueing: each connection's next fetch begins where its last one
ended, in bytes, so connections get equal parts of the limit whatever the sizes of their batches. A connection
that is new goes to the end of the line, so no client gains by reconnecting. A connection whose last response
has put the bucket into debt is in the line before its next fetch arrives, for as long as it is muted.

Anybody can fetch a partition, and only the broker knows who may read it. So all connections that have not got
records yet delay one that has got some by no more than one fetch: see before().
"""

from typing import Final, final

from mypy_extensions import i64 as native

HOLD_SECONDS: Final = 0.25
"""A reservation ends after this time. A broker responds at once if it has records; after this time it waits
for records that do not exist yet, and others must not wait for them."""
RETURN_SECONDS: Final = 0.1
"""A connection that does not fetch for this long after its time loses its place in the queue."""
COUNTED_AT_MOST: Final = 64
"""The number of places in the queue that are added up; for the rest, the average is assumed."""
FIRST_WEIGHT: Final = 0.125
"""The weight of the latest response in the average `first_bytes`."""


@final
class Ticket:
    """A connection's place: first in the queue, then, from grant() to renew(), among the reservations."""

    __slots__ = (
        "after",
        "before",
        "granted",
        "in_line",
        "queue",
        "reads",
        "reserves",
        "size",
        "start",
        "until",
    )

    def __init__(self, queue: "FetchQueue", start: float) -> None:
        self.queue: Final = queue
        self.size = 0.0
        """The bytes that it reserves, or will reserve. Its owner sets them before each wait() and grant()."""
        self.start = start
        """Its place in the queue: the bytes that the bucket has given to each connection before."""
        self.in_line = False
        self.reads = False
        """Whether a response has brought records."""
        self.granted = False
        self.reserves = False
        """Whether its reservation has not ended."""
        self.until = 0.0
        """When the reservation ends, or the place in the queue is lost."""
        self.before: Ticket | None = None
        """The neighbours among the reservations of the bucket, which are a linked list."""
        self.after: Ticket | None = None


@final
class FetchQueue:
    """The queue of one bucket. Times are the caller's `now`, on one clock."""

    __slots__ = (
        "_count",
        "_first",
        "_last",
        "_line",
        "_reserved",
        "_reserved_by_new",
        "_turn",
        "first_bytes",
    )

    def __init__(self) -> None:
        self._first: Ticket | None = None
        """The tickets that reserve, in the order in which the reservations end: the first and the last. If
        none reserves, both are the last that did, unless it has ended: mostly it reserves again.
        """
        self._last: Ticket | None = None
        self._count: native = 0
        """How many reserve."""
        self._line: Final[list[Ticket]] = []
        """The tickets of the connections that wait, by ascending start."""
        self._turn = 0.0
        """The start of the last ticket that was granted."""
        self._reserved = 0.0
        """The bytes of the tickets that reserve."""
        self._reserved_by_new = 0.0
        """Those of connections that have not got records."""
        self.first_bytes = -1.0
        """The size of connections' first responses, and of all responses to share consumers, as a moving
        average; -1.0 before there is one.
        """

    @property
    def waiting(self) -> int:
        """The number of connections in the queue."""
        return len(self._line)

    def newcomer(self) -> Ticket:
        """Return the ticket of a connection that has had none."""
        start = self._line[-1].start if self._line else self._turn
        return Ticket(self, max(start, self._turn))

    @property
    def any_waits(self) -> bool:
        """Whether a connection is in the queue."""
        return len(self._line) > 0

    @property
    def unused(self) -> bool:
        """Whether no connection is in the queue, and none has reserved bytes."""
        return self._count == 0 and len(self._line) == 0

    def renew(self, ticket: Ticket, size: float, delivered: float) -> None:
        """End a ticket, and make it that of the connection's next fetch, after a response of this size."""
        if ticket.in_line:
            self._leave(ticket)
        if ticket.reserves:
            self._release(ticket)
        ticket.size = size
        ticket.start += delivered
        if delivered > 0.0:
            ticket.reads = True
        ticket.granted = False

    def reserved(self, now: float) -> float:
        """The bytes that fetches in flight may still bring."""
        while self._count > 0:
            ticket = self._first
            if ticket is None or ticket.until > now:
                break
            self._release(ticket)
        return self._reserved

    def before(self, ticket: Ticket, now: float) -> float:
        """The bytes that are reserved, or are for connections ahead of this one. If it has got records, those
        that have not count as one fetch of its size at most.
        """
        reserved = self.reserved(now)
        ahead, ahead_new = self._ahead(ticket, now)
        new = self._reserved_by_new + ahead_new
        excess = new - ticket.size
        return reserved + ahead - excess if ticket.reads and excess > 0.0 else reserved + ahead

    def ahead(self, ticket: Ticket | None, now: float) -> float:
        """The bytes for the connections ahead of this one; None: for all in the queue."""
        return 0.0 if not self._line else self._ahead(ticket, now)[0]

    def _ahead(self, ticket: Ticket | None, now: float) -> tuple[float, float]:
        """The result of ahead(), and how much of it is for connections that have not got records."""
        line = self._line
        gone: list[Ticket] = []
        counted = 0
        size = 0.0
        new = 0.0
        for other in line:
            if other is ticket:
                break
            if other.until <= now:
                gone.append(other)
                continue
            if ticket is not None and not ticket.in_line and other.start > ticket.start:
                break
            counted += 1
            size += other.size
            if not other.reads:
                new += other.size
            if counted == COUNTED_AT_MOST:
                size *= len(line) / COUNTED_AT_MOST
                new *= len(line) / COUNTED_AT_MOST
                break
        for other in gone:
            self._leave(other)
        return size, new

    def wait(self, ticket: Ticket, until: float) -> None:
        """Put a ticket into the queue, or let it keep its place, until this time."""
        ticket.until = until
        if ticket.in_line:
            return
        ticket.in_line = True
        ticket.start = max(ticket.start, self._turn)
        line = self._line
        at = len(line)
        while at > 0 and line[at - 1].start > ticket.start:
            at -= 1
        line.insert(at, ticket)

    def _leave(self, ticket: Ticket) -> None:
        if ticket.in_line:
            ticket.in_line = False
            self._line.remove(ticket)

    def grant(self, ticket: Ticket, now: float) -> None:
        """Reserve the bytes of a fetch that is forwarded."""
        if ticket.in_line:
            self._leave(ticket)
        if ticket.start < self._turn:
            ticket.start = self._turn
        else:
            self._turn = ticket.start
        ticket.granted = ticket.reserves = True
        ticket.until = now + HOLD_SECONDS
        last = self._last
        if self._count == 0 or last is None:
            if last is not ticket:
                self._first = self._last = ticket
        else:
            last.after = ticket
            ticket.before = last
            self._last = ticket
        self._count += 1
        self._reserved += ticket.size
        if not ticket.reads:
            self._reserved_by_new += ticket.size

    def end(self, ticket: Ticket) -> float:
        """Give up a place or a reservation; return the bytes that were still reserved."""
        self._leave(ticket)
        reserved = 0.0
        if ticket.reserves:
            self._release(ticket)
            reserved = ticket.size
        if self._count == 0:
            self._first = self._last = None
        return reserved

    def _release(self, ticket: Ticket) -> None:
        self._count -= 1
        if self._count == 0:
            # Nearly always it is the only reservation, because one connection fetches a partition.
            self._reserved = self._reserved_by_new = 0.0
            ticket.reserves = False
            return
        before, after = ticket.before, ticket.after
        if before is None:
            self._first = after
        else:
            before.after = after
        if after is None:
            self._last = before
        else:
            after.before = before
        ticket.before = ticket.after = None
        ticket.reserves = False
        self._reserved -= ticket.size
        if not ticket.reads:
            self._reserved_by_new -= ticket.size

    def first_response(self, size: float, assumed: float) -> None:
        """Note the size of a response for `first_bytes`; `assumed` is the average before there was any."""
        first = assumed if self.first_bytes < 0.0 else self.first_bytes
        self.first_bytes = first + FIRST_WEIGHT * (size - first)
