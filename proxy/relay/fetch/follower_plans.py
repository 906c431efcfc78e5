"""FollowerPlans: the plans of a follower's session, each of which has what has changed since the last one.

A follower sends a fetch every few milliseconds while other replicas of its session are in sync, and thousands
of throttled replicas may wait meanwhile. A plan of all of them would take milliseconds.
"""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch.follower_plan import FollowerItem, FollowerPlan, SessionState
from proxy.quota.identity import Identity
from proxy.wire.fetch.request import PartitionKey


@final
class FollowerPlans:
    """The plans of one session."""

    def __init__(self) -> None:
        self.decided: Final[dict[PartitionKey, None]] = {}
        """The partitions about which plans have decided since the last request to the broker."""
        self._changed: Final[dict[FollowerItem, None]] = {}
        """The items about which something has changed since the last plan: new ones, those that a request of
        the follower names, and those about which the broker has reported something.
        """
        self._dropped: Final[list[FollowerItem]] = []
        """The items that the session no longer has since the last plan."""
        self._state: SessionState | None = None
        """What the quotas keep of the session, from the last plan; None before the first."""

    def note(self, item: FollowerItem) -> None:
        """Note that something about an item has changed."""
        self._changed[item] = None

    def drop(self, item: FollowerItem) -> None:
        """Note that the session no longer has an item."""
        self._changed.pop(item, None)
        self.decided.pop(item.key, None)
        self._dropped.append(item)

    def plan(self, engine: QuotaEngine, who: Identity, now: float, *, any_items: bool) -> FollowerPlan:
        """Return a new plan. `any_items`: whether the session has items; if not, the quotas are not asked,
        and what they keep of the session is dropped.
        """
        plan = FollowerPlan(list(self._changed), list(self._dropped), self._state)
        self._changed.clear()
        self._dropped.clear()
        self._state = None
        if any_items:
            engine.plan_follower_fetch(plan, who, now)
            self._state = plan.state
        for item in plan.items:
            self.decided[item.key] = None
        for item in plan.included:
            self.decided[item.key] = None
        return plan
