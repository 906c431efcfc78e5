"""FollowerPlan: the plan of a follower's fetch.

A follower may have thousands of partitions that wait, and sends a fetch every few milliseconds. So its plans
have only the partitions about which something has changed since the session's last plan. What a plan decides
about a partition holds until a plan decides anew.

The quota keeps what it needs in `state`. It calls include() for further partitions about which it decides
anew, and omit_more() for those that it leaves omitted.
"""

from typing import Final, final

from proxy.quota.fetch_plan import FetchItem, FetchPlan
from proxy.wire.fetch_request import NO_BOUND


class SessionState:
    """What a quota keeps of a follower's session from plan to plan. The quota subclasses it."""


@final
class FollowerPlan(FetchPlan):
    """The plan of one fetch. `items` are those about which something has changed."""

    def __init__(self, items: list[FetchItem], dropped: list[FetchItem], state: SessionState | None) -> None:
        super().__init__(items)
        self.dropped: Final = dropped
        """The items that the session no longer has."""
        self.state = state
        """What the quota keeps of the session. None for the first plan."""
        self.included: Final[list[FetchItem]] = []
        """The other items about which the plan decides."""

    def include(self, item: FetchItem) -> None:
        """Decide anew about an item that is not among `items`."""
        item.omitted = False
        item.bound = NO_BOUND
        self.included.append(item)

    def omit_more(self, count: int) -> None:
        """Count further items that stay omitted, without a new decision about each of them."""
        self.omitted += count

    def grant(self, item: FetchItem, max_bytes: int) -> None:
        """Limit the bytes of a partition as bound() does, if only to the client's own partition_max_bytes."""
        self.bound(item, max_bytes)
        if item.bound == NO_BOUND:
            self.set_bound(item, item.max_bytes)
