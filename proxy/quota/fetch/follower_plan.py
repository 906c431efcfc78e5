"""FollowerPlan: the plan of a follower's fetch.

A follower may have thousands of partitions that wait, and sends a fetch every few milliseconds. So its plans
have only the partitions about which something has changed since the session's last plan. What a plan decides
about a partition holds until a plan decides anew.

The quota keeps what it needs in `state`. It calls include() for further partitions about which it decides
anew, and omit_more() for those that it leaves omitted.
"""

from typing import Final, final

from proxy.quota.fetch.plan import NO_KEY, FetchItem, FetchPlan
from proxy.wire.fetch.request import NO_BOUND, PartitionKey
from proxy.wire.fetch.rewrite import Watermarks


class ItemState:
    """What a quota keeps of a partition from plan to plan. The quota subclasses it."""


@final
class FollowerItem(FetchItem):
    """A partition of a follower, with what the quota keeps of it."""

    __slots__ = ("replica_id", "state")

    def __init__(
        self, topic: str, partition: int, replica_id: int, marks: Watermarks, key: PartitionKey = NO_KEY
    ) -> None:
        super().__init__(topic, partition, marks, key)
        self.replica_id: Final = replica_id
        """The follower's node id."""
        self.state: ItemState | None = None
        """What the replication quota knows of the replica, so that plans need no look-up."""


class SessionState:
    """What a quota keeps of a follower's session from plan to plan. The quota subclasses it."""


@final
class FollowerPlan(FetchPlan):
    """The plan of one fetch."""

    def __init__(
        self, items: list[FollowerItem], dropped: list[FollowerItem], state: SessionState | None
    ) -> None:
        super().__init__()
        self.items: Final = items
        """The items about which something has changed. Read-only. The plan omits or bounds none of them yet.
        """
        self.dropped: Final = dropped
        """The items that the session no longer has."""
        self.state = state
        """What the quota keeps of the session. None for the first plan."""
        self.included: Final[list[FollowerItem]] = []
        """The other items about which the plan decides."""
        for item in items:
            item.decide_anew()

    def include(self, item: FollowerItem) -> None:
        """Decide anew about an item that is not among `items`."""
        item.decide_anew()
        self.included.append(item)

    def omit_more(self, count: int) -> None:
        """Count further items that stay omitted, without a new decision about each of them."""
        self.omitted += count

    def grant(self, item: FollowerItem, max_bytes: int) -> None:
        """Limit the bytes of a partition as bound() does, if only to the client's own partition_max_bytes."""
        self.bound(item, max_bytes)
        if item.bound == NO_BOUND:
            self.set_bound(item, item.max_bytes)
