"""DebtWait: a Produce request waits until the debt that existed before it is paid."""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.measure.debt import PAID_SECONDS, Debt
from proxy.quota.verdict import Verdict
from proxy.relay.requests.waiting_produce import WaitingProduce

REVIEW_SECONDS: Final = 1.0
"""Seconds between reviews of a wait: the client may have closed the connection, or its limit may have been
raised.
"""
UNACKNOWLEDGED_SECONDS: Final = 10.0
"""Seconds that a request with acks=0 may wait after its client has closed the connection. Such clients expect
no response, and many close the connection when they have sent everything. A longer wait would let them fill
the memory.
"""


@final
class DebtWait:
    """The wait of one request, which the quotas have charged."""

    def __init__(self, produce: WaitingProduce, verdict: Verdict, now: float) -> None:
        self.produce: Final = produce
        assert verdict.ahead is not None, "its seconds are of a bucket"
        until = now + verdict.ahead_seconds
        self._debt: Final = Debt(verdict.ahead, produce.exchange.client, until)
        self._reviewed_at = now
        self.droppable: Final = produce.view.acks != 0 or verdict.ahead_seconds > UNACKNOWLEDGED_SECONDS
        """Whether the request is dropped if its client closes the connection: the client sends it again, or
        has waited too long.
        """
        self.wake_at = min(until, now + REVIEW_SECONDS)
        """When review() is due."""

    def review(self, engine: QuotaEngine, now: float) -> bool:
        """Return whether the debt is paid, under the limits in force."""
        until = engine.review(self._debt, now)
        if until <= now + PAID_SECONDS:
            return True
        self._reviewed_at = now
        self.wake_at = min(until, now + REVIEW_SECONDS)
        return False

    def drop(self, engine: QuotaEngine) -> None:
        """Drop the request: take back its charges, unless a part of it has been forwarded."""
        produce = self.produce
        if not produce.begun:
            view = produce.view
            engine.give_back(view, view.items, produce.exchange.client, self._reviewed_at)
