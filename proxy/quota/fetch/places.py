"""FetchPlaces: the buckets to which the response to a fetch will be charged, and the tickets for them.

A ticket is a place in the queue of a bucket (proxy.quota.measure.fetch_queue). It serves fetch after fetch of
a connection, because the next fetch mostly has the same buckets, and has to continue where the last one
ended. A connection may have thousands of buckets, so a fetch with the same buckets in the same order costs
little.

1. begin() begins with the next fetch.
2. add() and add_all() name its buckets, each bucket once.
3. complete() gives up the tickets for the buckets that the fetch does not have.

Invariants:
- tickets[i] is the ticket for buckets[i].
- The first `_count` buckets are those of the fetch, in the order in which they have been added. The others,
  and those in `_others`, are buckets of the last fetch which this one has not named yet. After complete(),
  there are none of these.
- The buckets of each AddedList are in `buckets`, from its `start` on.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.fetch_queue import Ticket
from proxy.quota.measure.fetch_tokens import enforced, queue_of


@final
class AddedList:
    """A list of buckets that a fetch has by add_all()."""

    __slots__ = ("buckets", "size", "start")

    def __init__(self, buckets: list[Bucket], size: native, start: native) -> None:
        self.buckets: Final = buckets
        """Its owner changes it only by appending."""
        self.size: Final = size
        """How many of its buckets, from the first on, the fetch has."""
        self.start: Final = start
        """The index of the first of them in FetchPlaces.buckets."""


@final
class FetchPlaces:
    """The buckets and tickets of one fetch, and then of the next."""

    __slots__ = (
        "_count",
        "_lists",
        "_lists_count",
        "_next",
        "_others",
        "_set",
        "buckets",
        "tickets",
    )

    def __init__(self) -> None:
        self.buckets: Final[list[Bucket]] = []
        """Read-only, as `tickets`."""
        self.tickets: Final[list[Ticket]] = []
        self._count: native = 0
        self._others: dict[Bucket, Ticket] | None = None
        self._lists: Final[list[AddedList]] = []
        """In the order of add_all()."""
        self._lists_count: native = 0
        """How many of them are of the fetch; the others are of the last one."""
        self._next: native = 0
        """The index of the bucket for which expects() probably is called next."""
        self._set: set[Bucket] | None = None
        """The same as `buckets`; None before has() needs it."""

    def begin(self) -> None:
        """Begin with the next fetch. No ticket may be granted."""
        self._count = 0
        self._lists_count = 0
        self._next = 0

    def add(self, bucket: Bucket) -> None:
        """Add a bucket of the fetch, unless it limits nothing."""
        if not enforced(bucket):
            return
        at = self._count
        buckets = self.buckets
        if at >= len(buckets) or buckets[at] is not bucket:
            self._insert(bucket)
        self._count = at + 1

    def add_all(self, buckets: list[Bucket]) -> None:
        """Add each of these buckets, as add() does. If the last fetch had the same list, as for most fetches,
        this takes one step.
        """
        start = self._count
        size: native = len(buckets)
        lists = self._lists
        at = self._lists_count
        if at < len(lists):
            known = lists[at]
            if known.buckets is buckets and known.size == size and known.start == start:
                self._count = start + size
                self._lists_count = at + 1
                return
        for bucket in buckets:
            self.add(bucket)
        del lists[at:]
        if self._count == start + size:  # otherwise some of the buckets limit nothing
            lists.append(AddedList(buckets, size, start))
            self._lists_count = at + 1

    def complete(self) -> None:
        """Note that all buckets of the fetch have been added."""
        if self._count < len(self.buckets):
            self._set_aside()
        others = self._others
        if others is not None:
            for ticket in others.values():
                ticket.queue.end(ticket)
            self._others = None

    def leave(self) -> None:
        """Give up all tickets, because the connection is over. No queue refers to them any more."""
        for ticket in self.tickets:
            ticket.queue.end(ticket)

    def _insert(self, bucket: Bucket) -> None:
        """Append a bucket that the last fetch did not have at this index."""
        if self._count < len(self.buckets):
            self._set_aside()
        others = self._others
        ticket = None if others is None else others.pop(bucket, None)
        self.tickets.append(queue_of(bucket).newcomer() if ticket is None else ticket)
        self.buckets.append(bucket)
        self._set = None

    def _set_aside(self) -> None:
        """Move the buckets that follow those of the fetch to `_others`."""
        at = self._count
        others = self._others
        if others is None:
            others = self._others = {}
        for place in range(at, len(self.buckets)):
            others[self.buckets[place]] = self.tickets[place]
        del self.buckets[at:]
        del self.tickets[at:]
        self._set = None
        lists = self._lists
        while lists and lists[-1].start + lists[-1].size > at:
            lists.pop()

    @property
    def any(self) -> bool:
        """Whether the fetch has any bucket."""
        return self._count > 0

    def count_of(self, buckets: list[Bucket]) -> native:
        """How many of these buckets, from the first on, the fetch has by add_all(); 0 if they are another
        list.
        """
        for known in self._lists:
            if known.buckets is buckets:
                return known.size
        return 0

    def has(self, bucket: Bucket) -> bool:
        """Whether the fetch has a bucket."""
        known = self._set
        if known is None:
            known = self._set = set(self.buckets)
        return bucket in known

    def expects(self, bucket: Bucket) -> bool:
        """Whether the fetch has a bucket, if the buckets of a response are asked for in the order of those of
        the fetch. If this returns False, has() tells.
        """
        buckets = self.buckets
        at = self._next
        if at < len(buckets) and buckets[at] is bucket:
            self._next = at + 1
            return True
        # The first bucket may be the client's own, which no partition has.
        if at + 1 < len(buckets) and buckets[at + 1] is bucket:
            self._next = at + 2
            return True
        return False
