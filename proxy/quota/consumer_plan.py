"""ConsumerPlan: the plan of a consumer's fetch."""

import math
from typing import Final, final

from proxy.quota.fetch_plan import FetchItem, FetchPlan
from proxy.wire.fetch_request import NO_BOUND


@final
class ConsumerPlan(FetchPlan):
    """The plan of one fetch. `items` are those of the whole session that any quota may omit, in round-robin
    order: each plan starts behind the partitions that the one before let in.
    """

    def __init__(self, items: list[FetchItem], answer_at: float = math.inf) -> None:
        super().__init__(items)
        self.answer_at: Final = answer_at
        """The latest time at which the client gets a response to the fetch."""

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
