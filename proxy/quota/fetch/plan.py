"""FetchPlan: which partitions the quotas omit from one fetch, and how many bytes of the others may come.

Replication quotas (KIP-73) omit partitions, and quotas of topics and their partitions with the action `omit`.

1. configure() sets `Quota.omits` if the quota may omit any partition at all.
2. may_omit() says which partitions the quota is about. The relay calls it once for each partition of a fetch
   session, and again after each configure(), so it has to be cheap and may depend on nothing but the limits.
3. Before each fetch goes to the broker, the relay creates a plan, and the quota calls FetchPlan.omit() for
   partitions that it omits now, and bound() for others. plan_consumer_fetch() plans a consumer's fetch
   (ConsumerPlan), plan_follower_fetch() a follower's (FollowerPlan). They differ in what a plan is about: all
   partitions of a consumer, but only those of a follower about which something has changed.
4. charge() gets the response, as for any quota; its items have the bytes of each partition.

An omitted partition leaves the broker's fetch session without its client noticing, and comes back with the
first plan that does not omit it. A fetch of which every partition is omitted waits until `ask_again_at`, or
gets an empty response when its max_wait_ms is over. If only some are omitted, the fetch goes to the broker
with a max_wait_ms that ends no later than `ask_again_at`. So no client is muted, no partition waits for
another, and no timer fires more often than a limit has to be checked.
"""

from typing import Final, final

from proxy.wire.fetch.request import NO_BOUND, PartitionKey
from proxy.wire.fetch.rewrite import Watermarks

NO_KEY: Final[PartitionKey] = (b"", -1)


class FetchItem:
    """A partition that a quota may omit: a ConsumerItem or a FollowerItem. It lives as long as the partition
    is in its session.
    """

    __slots__ = ("bound", "fetch_offset", "key", "marks", "max_bytes", "omitted", "partition", "topic")

    def __init__(self, topic: str, partition: int, marks: Watermarks, key: PartitionKey) -> None:
        self.key: Final = key
        """The partition as the session names it."""
        self.topic: Final = topic
        self.partition: Final = partition
        self.marks: Final = marks
        """What the broker last reported about the partition on this connection."""
        self.fetch_offset = 0
        """The offset that the client fetches next."""
        self.max_bytes = 0
        """The client's own partition_max_bytes."""
        self.omitted = False
        """Whether the last plan omitted it."""
        self.bound = NO_BOUND
        """The partition_max_bytes in the request to the broker; NO_BOUND for the client's own value."""

    @final
    def decide_anew(self) -> None:
        """Forget what earlier plans have decided."""
        self.omitted = False
        self.bound = NO_BOUND


class FetchPlan:
    """What the plans of consumers' and of followers' fetches share. A new plan is created each time that the
    quotas are asked about a fetch.
    """

    def __init__(self) -> None:
        self.bounded: Final[list[FetchItem]] = []
        """The items with a bound. Some may be omitted after all."""
        self.omitted = 0
        """The number of omitted items."""
        self.ask_again_at = 0.0
        """When to ask the quotas again; 0.0: not before the client's next fetch."""

    @final
    def omit(self, item: FetchItem, ask_again_at: float) -> None:
        """Omit a partition. `ask_again_at`, on the clock of `now`, is the earliest time at which it may come
        back; the quotas are asked sooner if the client fetches sooner.
        """
        if not item.omitted:
            item.omitted = True
            self.omitted += 1
        self.ask_at(ask_again_at)

    @final
    def ask_at(self, ask_again_at: float) -> None:
        """Have the quotas asked again at this time at the latest."""
        if self.ask_again_at == 0.0 or ask_again_at < self.ask_again_at:
            self.ask_again_at = ask_again_at

    @final
    def bound(self, item: FetchItem, max_bytes: int) -> None:
        """Limit the bytes of a partition, but to no less than one batch if the batch size is known."""
        bound = max(max_bytes, item.marks.batch_bytes, 1)
        if bound < item.max_bytes and (item.bound == NO_BOUND or bound < item.bound):
            self.set_bound(item, bound)

    @final
    def set_bound(self, item: FetchItem, bound: int) -> None:
        """Set the bound of a partition, whatever its batches."""
        if item.bound == NO_BOUND:
            self.bounded.append(item)
        item.bound = bound
