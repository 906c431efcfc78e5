"""Division: divides the bytes that one fetch may bring among the replicas that wait for bytes.

Replicas get bytes in the order in which they wait (WaitingReplicas), as many as there are bytes for. If any
may start, the first of them goes before all others, so that they cannot starve it.
"""

from typing import Final, cast, final

from proxy.quota.fetch.follower_plan import FollowerPlan
from proxy.quota.kinds.replication.fetch_budget import FetchBudget
from proxy.quota.kinds.replication.grants import Grants
from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.throttle import Throttle
from proxy.quota.kinds.replication.waiter import Waiter
from proxy.quota.kinds.replication.waiting_replicas import ReplicaQueue, WaitingReplicas

PIECE_BYTES: Final = 64 << 10
"""The smallest grant of a fetch's second and later replicas. Each replica in a response costs the broker a
read, so smaller pieces would make a fetch of many replicas slow; larger ones would make the rate less
even."""


@final
class Division:
    """The division of one plan; divide() is called once."""

    __slots__ = ("_budget", "_grants", "_now", "_plan", "_session", "_sharers", "_starts", "_waiter")

    def __init__(
        self, plan: FollowerPlan, session: WaitingReplicas, waiter: Waiter, budget: FetchBudget, now: float
    ) -> None:
        """`waiter`: the connection of the session."""
        self._plan: Final = plan
        self._session: Final = session
        self._waiter: Final = waiter
        self._budget: Final = budget
        self._now: Final = now
        self._grants: Final = Grants(now)
        self._starts = 0
        """How many replicas may still start with the fetch."""
        self._sharers = 0
        """How many replicas divide the rest of the bytes."""

    def divide(self) -> Grants:
        """Grant bytes, and note in the waiter which throttles lack bytes for the others."""
        session = self._session
        waiter = self._waiter
        session.open()
        first = session.next_new()
        waiter.starting = first is not None
        if first is not None:
            self._starts = self._count_starts(first.throttles)
        # Replicas that may not start yet get no bytes, so the others divide all of them.
        self._sharers = session.size - max(session.new - self._starts, 0)
        queue = first if self._starts > 0 else session.next()
        while queue is not None:
            self._offer(queue)
            queue = session.next()
        exhausted = self._budget.exhausted
        waiter.throttles = list(exhausted)
        waiter.ready_at = min(exhausted.values(), default=self._now)
        if self._grants.replicas:
            waiter.served_at = self._now
        return self._grants

    def _count_starts(self, throttles: list[Throttle]) -> int:
        """Return how many replicas with these throttles may start with the fetch."""
        spare = True
        for throttle in throttles:
            if not self._budget.has_spare(throttle):
                self._waiter.lacked[throttle] = self._now
                spare = False
        return self._waiter.starts(self._now, spare)

    def _offer(self, queue: ReplicaQueue) -> None:
        """Grant bytes to the first replica of a queue. Close the queue if there are none for it."""
        if queue.new and self._starts == 0:
            queue.closed = True
            self._plan.ask_at(self._waiter.start_at(self._now))
            return
        item = queue.first
        replica = cast("Replica", item.state)
        budget = self._budget
        queue.lacking = budget.lacking(replica, PIECE_BYTES if self._grants.replicas else 0)
        if queue.lacking:
            queue.closed = True
            self._plan.ask_at(budget.ready_at)
            return
        if queue.new:
            self._waiter.start(self._now)
            self._starts -= 1
        if item.omitted:
            self._plan.include(item)
        replica.omitted_since = 0.0
        share = max(budget.left / max(self._sharers, 1), PIECE_BYTES)
        self._sharers -= 1
        self._grants.add(self._plan, item, min(budget.left, share, item.max_bytes), self._now)
        self._session.leave(item)
        self._session.again[item] = None
        queue.closed = len(queue.places) == 0
