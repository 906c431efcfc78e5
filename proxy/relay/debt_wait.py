"""DebtWait: a Produce request waits until a debt is paid that was there before it."""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.measure.debt import Debt
from proxy.quota.verdict import Verdict
from proxy.relay.inflight import PAID_SECONDS
from proxy.relay.waiting_produce import WaitingProduce

REVIEW_SECONDS: Final = 1.0
"""How often the wait is reviewed: the client may have hung up, or its limit may be raised."""
UNACKNOWLEDGED_SECONDS: Final = 10.0
"""How long a request with acks=0 may wait after its client has hung up. Such clients expect no response, and
many close the connection when they have sent everything. A longer wait would let them fill the memory.
"""


@final
class DebtWait:
    """The quotas have charged the request."""

    def __init__(self, produce: WaitingProduce, verdict: Verdict, now: float) -> None:
        self.produce: Final = produce
        assert verdict.ahead is not None, "its seconds are of a bucket"
        until = now + verdict.ahead_seconds
        self._debt: Final = Debt(verdict.ahead, produce.exchange.client, until)
        self._reviewed_at = now
        self.droppable: Final = produce.view.acks != 0 or verdict.ahead_seconds > UNACKNOWLEDGED_SECONDS
        """Whether it is dropped if its client hangs up: the client sends it again, or has waited too long."""
        self.wake_at = min(until, now + REVIEW_SECONDS)
        """When review() is due."""

    def review(self, engine: QuotaEngine, now: float) -> bool:
        """Return whether the debt is paid under the limits in force."""
        until = engine.review(self._debt, now)
        if until <= now + PAID_SECONDS:
            return True
        self._reviewed_at = now
        self.wake_at = min(until, now + REVIEW_SECONDS)
        return False

    def drop(self, engine: QuotaEngine) -> None:
        """The connection is over: take back what the request was charged, unless a part of it has left."""
        produce = self.produce
        if produce.cut is None:
            view = produce.view
            engine.give_back(view, view.items, produce.exchange.client, self._reviewed_at)
