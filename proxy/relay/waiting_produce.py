"""WaitingProduce: a Produce request, or the rest of it, that waits for a debt to be paid."""

from typing import Final, final

from proxy.quota.measure.debt import Debt
from proxy.quota.verdict import Verdict
from proxy.relay.cut_through import CutThrough
from proxy.relay.exchange import Exchange
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView

REVIEW_SECONDS: Final = 1.0
"""How often a request that waits is looked at: its client may have hung up, or its limit may be raised."""
UNACKNOWLEDGED_SECONDS: Final = 10.0
"""How long a request with acks=0 may wait after its client has hung up. Such clients expect no response, and
many close the connection when they have sent everything. A longer wait would let them fill the memory.
"""


@final
class WaitingProduce:
    """The quotas have charged it. A connection has one at a time."""

    def __init__(
        self,
        frame: Frame,
        exchange: Exchange,
        reader: Reader,
        view: RequestView,
        verdict: Verdict,
        now: float,
        cut: CutThrough | None = None,
    ) -> None:
        self.frame: Final = Frame(frame.pieces, frame.size, frame.complete)
        """The request, or the part of it that is there: the splitter uses its own object again."""
        self.exchange: Final = exchange
        self.reader: Final = reader
        self.view: Final = view
        self.cut: Final = cut
        """The request, if a part of it has been forwarded; else None."""
        assert verdict.ahead is not None, "its seconds are of a bucket"
        until = now + verdict.ahead_seconds
        self.debt: Final = Debt(verdict.ahead, exchange.client, until)
        """What was owed before it."""
        self.droppable: Final = view.acks != 0 or verdict.ahead_seconds > UNACKNOWLEDGED_SECONDS
        """Whether it is dropped if its client hangs up: the client sends it again, or has waited too long."""
        self.looked_at = now
        self.wake_at = 0.0
        """When it is looked at next."""
        self.look(until, now)

    def look(self, until: float, now: float) -> None:
        """The debt is paid at `until`, as things are now."""
        self.looked_at = now
        self.wake_at = min(until, now + REVIEW_SECONDS)
