"""FetchPlan: what quotas leave out of one fetch, and how much of the rest may come.

How a kind of quota holds partitions back (KIP-73's followers, consumers whose topic has `action: omit`):

1. Its configure() sets `Quota.holds_fetches` when it may hold back anything at all.
2. may_hold() says which partitions it is about. It is asked once for each partition of a session, and again
   after each configure(), so it has to be cheap and may depend on the limits alone.
3. hold_fetch() is asked before each fetch goes to the broker, with those partitions of the whole session, in
   turn: who is first moves on from plan to plan. It calls hold() for those that have to stay out now, and may
   call bound() for others.
4. charge() gets the answer, as for any quota; its items tell the bytes of each partition.

A partition that is held back leaves the broker's session, without its client noticing, and comes back with
the first plan that does not hold it. A fetch of which nothing is left waits until `ask_again_at`, or is
answered empty when its max_wait_ms is over; one of which something is left does not wait longer than that at
the broker. So a follower is never muted or delayed, and nobody is asked in a busy loop.
"""

from typing import Final, final

from proxy.wire.fetch_rewrite import Watermarks

NO_BOUND: Final = -1


@final
class FetchItem:
    """A partition that a quota may hold back. It lives as long as the partition is in its session."""

    __slots__ = ("fetch_offset", "held", "marks", "max_bytes", "most", "partition", "replica_id", "topic")

    def __init__(self, topic: str, partition: int, replica_id: int, marks: Watermarks) -> None:
        self.topic: Final = topic
        self.partition: Final = partition
        self.replica_id: Final = replica_id
        """The follower's node id; -1 for a consumer."""
        self.marks: Final = marks
        """What the broker has said of the partition last, on this connection."""
        self.fetch_offset = 0
        """The offset that the client wants next."""
        self.max_bytes = 0
        """The client's own partition_max_bytes."""
        self.held = False
        """Whether it is held back: before a plan is made, by the last one."""
        self.most = NO_BOUND
        """The partition_max_bytes that the broker is to get; NO_BOUND for the client's own."""


@final
class FetchPlan:
    """One fetch: which partitions are left out of it. Made anew for each, and each time that one is asked for
    again.
    """

    def __init__(self, replica_id: int, items: list[FetchItem]) -> None:
        self.replica_id: Final = replica_id
        """The follower's node id; -1 for a consumer."""
        self.items: Final = items
        """In turn, the one whose turn it is first; not to be changed."""
        self.held = 0
        """How many are held back."""
        self.ask_again_at = 0.0
        """When to ask again; 0.0 for not before the client asks."""
        for item in items:
            item.held = False
            item.most = NO_BOUND

    def hold(self, item: FetchItem, ask_again_at: float) -> None:
        """Leave a partition out. `ask_again_at`, on the clock of `now`: when it may come back; it is asked
        about earlier where the client fetches earlier.
        """
        if not item.held:
            item.held = True
            self.held += 1
        if self.ask_again_at == 0.0 or ask_again_at < self.ask_again_at:
            self.ask_again_at = ask_again_at

    def bound(self, item: FetchItem, max_bytes: int) -> None:
        """Let a partition bring no more than this, though always a whole batch where its size is known."""
        most = max(max_bytes, item.marks.batch_bytes, 1)
        if most < item.max_bytes and (item.most == NO_BOUND or most < item.most):
            item.most = most
