"""Round: what replication throttles have left while one fetch is planned."""

from typing import Final, final

from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.throttle import Throttle
from proxy.quota.limits.enforcement import UNLIMITED


@final
class Round:
    """`ahead` says how many connections have waited for a throttle longer."""

    def __init__(self, ahead: dict[Throttle, int], now: float) -> None:
        self._ahead: Final = ahead
        self._now: Final = now
        self.exhausted: Final[dict[Throttle, float]] = {}
        """When those may let something in that now lack bytes for whom they have been asked."""
        self.left = UNLIMITED
        """Bytes that all throttles of the replica asked about last have, if they lack none."""
        self.ready_at = now
        """When it may come, if they do."""

    def lacking(self, replica: Replica, least: int) -> list[Throttle]:
        """The sides that lack the bytes for a replica: `least`, or a turn's where that is 0, and one batch
        at any rate.
        """
        lacking: list[Throttle] = []
        self.left = UNLIMITED
        self.ready_at = self._now
        for throttle in replica.throttles:
            ready = self.exhausted.get(throttle, 0.0)
            if ready == 0.0:
                others = self._ahead.get(throttle, 0)
                size = max(least if least > 0 else throttle.turn_bytes, replica.batch_bytes)
                if not throttle.lacks(size, others, self._now):
                    self.left = min(self.left, throttle.allowance(self._now) - throttle.for_others(others))
                    continue
                # Nobody overtakes one that needs more: it would wait for ever.
                ready = throttle.ready_at(max(size, throttle.turn_bytes), others, self._now)
                self.exhausted[throttle] = ready
            lacking.append(throttle)
            self.ready_at = max(self.ready_at, ready)
        return lacking
