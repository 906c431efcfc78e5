"""DebtWait: a Produce request waits until the debt that existed before it is paid.

A request whose records are not charged to their topic yet also waits while the broker waits for an event on
the same connection, such as records for a Fetch. The broker would not read the request meanwhile, and the
proxy would not learn whether it appends the records.
"""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.measure.debt import PAID_SECONDS, Debt
from proxy.quota.verdict import Verdict
from proxy.relay.inflight import InFlight
from proxy.relay.requests.waiting_produce import WaitingProduce
from proxy.wire.views import RequestView

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

    def __init__(self, produce: WaitingProduce, verdict: Verdict, in_flight: InFlight, now: float) -> None:
        self.produce: Final = produce
        self._in_flight: Final = in_flight
        until = now + verdict.ahead_seconds
        ahead = verdict.ahead
        self._debt: Debt | None = None
        if ahead is not None and verdict.ahead_seconds > 0.0:
            self._debt = Debt(ahead, produce.exchange.client, until)
        self._reviewed_at = now
        self.awaits_response: Final = produce.view.uncharged
        """Whether a response of the broker may end the wait."""
        self.droppable: Final = (
            produce.view.acks != 0
            or verdict.ahead_seconds > UNACKNOWLEDGED_SECONDS
            or behind_event(produce.view, in_flight)
        )
        """Whether the request is dropped if its client closes the connection: the client sends it again, or
        has waited too long.
        """
        self.wake_at = min(until, now + REVIEW_SECONDS) if until > now else now + REVIEW_SECONDS
        """When review() is due."""

    def review(self, engine: QuotaEngine, now: float) -> bool:
        """Return whether the request may go on: its debt is paid, under the limits in force."""
        debt = self._debt
        until = now if debt is None else engine.review(debt, now)
        if until <= now + PAID_SECONDS:
            self._debt = None
            if not behind_event(self.produce.view, self._in_flight):
                return True
            until = now + REVIEW_SECONDS
        self._reviewed_at = now
        self.wake_at = min(until, now + REVIEW_SECONDS)
        return False

    def drop(self, engine: QuotaEngine) -> None:
        """Drop the request: take back its charges, unless a part of it has been forwarded."""
        produce = self.produce
        if not produce.begun:
            view = produce.view
            engine.give_back(view, view.items, produce.exchange.client, self._reviewed_at)


def behind_event(view: RequestView, in_flight: InFlight) -> bool:
    """Whether a Produce request must not be forwarded yet, because its records are not charged to their topic
    and its client may delay the response.
    """
    return view.uncharged and in_flight.awaits_event
