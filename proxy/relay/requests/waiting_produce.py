"""WaitingProduce: a Produce request, or the rest of it, that waits for topic names or for a debt."""

from typing import Final, final

from proxy.relay.exchange import Exchange
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView


@final
class WaitingProduce:
    """The request, and what is needed to continue with it. A connection has one at a time."""

    def __init__(
        self,
        frame: Frame,
        exchange: Exchange,
        reader: Reader,
        view: RequestView,
        *,
        begun: bool = False,
    ) -> None:
        self.frame: Final = Frame(frame.pieces, frame.size, frame.complete)
        """The request, or the part of it that has arrived. It is a copy, because the splitter uses its object
        again.
        """
        self.exchange: Final = exchange
        self.reader: Final = reader
        self.view: Final = view
        self.begun: Final = begun
        """Whether a part of the request has been forwarded."""
