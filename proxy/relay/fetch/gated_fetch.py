"""GatedFetch: a fetch from which quotas may omit partitions, and what happens to it."""

from typing import Final, final

from proxy.quota.fetch.plan import FetchPlan
from proxy.relay.exchange import Exchange
from proxy.relay.fetch.session import FetchSession
from proxy.relay.fetch.session_update import SessionUpdate
from proxy.wire.fetch.request import FetchRequest
from proxy.wire.views import RequestView

NAMES_SECONDS: Final = 0.5
"""The longest time for which a consumer's fetch waits for topic names."""

FORWARD: Final = 0
"""The request is forwarded, with the view's edits."""
WAIT: Final = 1
"""No partition of it is left. Ask the quotas again at `wake_at`."""
ANSWER: Final = 2
"""The request is not forwarded, and has its response."""


@final
class GatedFetch:
    """A fetch from which quotas may omit some or all partitions."""

    def __init__(self, exchange: Exchange, view: RequestView, request: FetchRequest, now: float) -> None:
        self.exchange: Final = exchange
        self.view: Final = view
        self.request: Final = request
        self.answer_at: Final = now + max(view.max_wait_ms, 0) / 1000.0
        """The latest time at which the client gets a response, even if every partition is still omitted."""
        self.names_by: Final = now + NAMES_SECONDS
        """The latest time until which the fetch waits for the names of its topics."""
        self.wake_at = 0.0
        self.answer = b""
        """The local response, a whole frame."""
        self.session: FetchSession | None = None
        self.update: SessionUpdate | None = None
        """While the session has not taken all partitions of the request; see FetchSessions.updated()."""
        self.plan: FetchPlan | None = None
        """The plan of a fetch of very many partitions, which the next turn of the event loop carries out."""
