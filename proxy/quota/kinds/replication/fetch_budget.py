"""FetchBudget: the bytes that replication throttles have left while a fetch is planned."""

from typing import Final, final

from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.throttle import Throttle
from proxy.quota.limits.enforcement import UNLIMITED


@final
class FetchBudget:
    """The budget of one plan. `ahead`: the number of connections that have waited longer, by throttle."""

    def __init__(self, ahead: dict[Throttle, int], now: float) -> None:
        self._ahead: Final = ahead
        self._now: Final = now
        self.exhausted: Final[dict[Throttle, float]] = {}
        """Throttles that lacked bytes for a replica, and when they will have them."""
        self.left = UNLIMITED
        """If none of the last replica's throttles lacked bytes: the bytes that all of them have."""
        self.ready_at = now
        """If any lacked bytes: when the last replica may be fetched."""

    def lacking(self, replica: Replica, least: int) -> list[Throttle]:
        """Return the throttles that lack the bytes for a replica: `least`, or Throttle.step_bytes if that is
        0, but always a whole batch. Set `left` and `ready_at`.
        """
        lacking: list[Throttle] = []
        self.left = UNLIMITED
        self.ready_at = self._now
        for throttle in replica.throttles:
            ready = self.exhausted.get(throttle, 0.0)
            if ready == 0.0:
                others = self._ahead.get(throttle, 0)
                size = max(least if least > 0 else throttle.step_bytes, replica.batch_bytes)
                if not throttle.lacks(size, others, self._now):
                    self.left = min(self.left, throttle.allowance(self._now) - throttle.for_others(others))
                    continue
                # Replicas that need less must not overtake this one: it would starve.
                ready = throttle.ready_at(max(size, throttle.step_bytes), others, self._now)
                self.exhausted[throttle] = ready
            lacking.append(throttle)
            self.ready_at = max(self.ready_at, ready)
        return lacking

    def has_spare(self, throttle: Throttle) -> bool:
        """Whether those that fetch use less than the throttle's limit."""
        return throttle.has_spare(self._ahead.get(throttle, 0), self._now)
