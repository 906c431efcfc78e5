"""ConsumerPlan: the plan of a consumer's fetch."""

import math
from typing import Final, final

from proxy.quota.fetch.plan import NO_KEY, FetchItem, FetchPlan
from proxy.quota.measure.fetch_queue import FetchQueue, Ticket
from proxy.wire.fetch.request import NO_BOUND, PartitionKey
from proxy.wire.fetch.rewrite import Watermarks


@final
class ConsumerItem(FetchItem):
    """A partition of a consumer, with its places in the queues of buckets."""

    __slots__ = ("tickets",)

    def __init__(self, topic: str, partition: int, marks: Watermarks, key: PartitionKey = NO_KEY) -> None:
        super().__init__(topic, partition, marks, key)
        self.tickets: dict[FetchQueue, Ticket] | None = None
        """By bucket: its place in the queue, or the reservation of the last plan."""

    def ticket(self, queue: FetchQueue) -> Ticket | None:
        """The place or reservation in the queue of a bucket."""
        return None if self.tickets is None else self.tickets.get(queue)

    def set_ticket(self, queue: FetchQueue, ticket: Ticket) -> None:
        """Keep a place or a reservation until the next plan."""
        if self.tickets is None:
            self.tickets = {}
        self.tickets[queue] = ticket

    def take_tickets(self, earlier: "ConsumerItem") -> None:
        """Continue in the places of the same partition in an earlier fetch."""
        self.tickets = earlier.tickets
        earlier.tickets = None

    def end(self) -> None:
        """Give up the places, because the partition is not fetched any more."""
        if self.tickets is not None:
            for queue, ticket in self.tickets.items():
                queue.end(ticket)


@final
class ConsumerPlan(FetchPlan):
    """The plan of one fetch."""

    def __init__(self, items: list[ConsumerItem], answer_at: float = math.inf) -> None:
        super().__init__()
        self.answer_at: Final = answer_at
        """The latest time at which the client gets a response to the fetch."""
        self.items: Final = items
        """All items of the session that any quota may omit, in round-robin order: each plan starts behind the
        partitions that the one before let in. Read-only. The plan omits or bounds none of them yet.
        """
        for item in items:
            item.decide_anew()

    def served(self) -> int:
        """The number of items up to the last one that was included under a bound: the next plan begins after
        these.
        """
        items = self.items
        at = len(items)
        while at > 0:
            item = items[at - 1]
            if item.bound != NO_BOUND and not item.omitted:
                return at
            at -= 1
        return 0
