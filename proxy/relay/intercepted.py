"""Requests that the proxy answers itself: read whole, however large."""

from typing import Final, final

from proxy.relay.exchange import Exchange
from proxy.relay.inflight import InFlight
from proxy.wire.apis import RequestHeader
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed
from proxy.wire.frames import Frame

MAX_INTERCEPTED_REQUEST_BYTES: Final = 16 << 20
"""An intercepted request is held whole: a hundred thousand quotas at once fit."""


@final
class Intercepted:
    """A request that the proxy answers itself: somebody outside makes the answer and gives it to
    Relay.answer().
    """

    __slots__ = ("exchange", "frame", "header")

    def __init__(self, exchange: Exchange, header: RequestHeader, frame: bytes) -> None:
        self.exchange: Final = exchange
        self.header: Final = header
        self.frame: Final = frame
        """Header and body, without the length."""


@final
class Interception:
    """Hands such requests out when they are whole, those in several parts too."""

    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight: Final = in_flight
        self._handed_out: list[Intercepted] = []
        self._exchange: Exchange | None = None
        """Of the request that is too large to have come whole."""
        self._header: RequestHeader | None = None
        self._pieces: list[bytes] = []

    @property
    def open(self) -> bool:
        """Whether a request is half through."""
        return self._exchange is not None

    def take(self) -> list[Intercepted]:
        """The requests that have come since the last call."""
        taken = self._handed_out
        if taken:
            self._handed_out = []
        return taken

    def begin(self, exchange: Exchange, header: RequestHeader, frame: Frame) -> None:
        """Take a request, or the first part of one. Raises Malformed where it is too large."""
        if frame.size > MAX_INTERCEPTED_REQUEST_BYTES:
            raise Malformed(
                f"a request of API {header.api_key} has {frame.size} bytes; "
                f"the proxy answers it itself and takes {MAX_INTERCEPTED_REQUEST_BYTES} at most"
            )
        if frame.complete:
            self._hand_out(exchange, header, frame.pieces)
        else:
            self._exchange = exchange
            self._header = header
            self._pieces = list(frame.pieces)

    def go_on(self, frame: Frame) -> None:
        """Take the next part of the request that is half through."""
        exchange = self._exchange
        header = self._header
        self._pieces.extend(frame.pieces)
        if frame.complete and exchange is not None and header is not None:
            pieces = self._pieces
            self._exchange = None
            self._header = None
            self._pieces = []
            self._hand_out(exchange, header, pieces)

    def _hand_out(self, exchange: Exchange, header: RequestHeader, pieces: list[bytes]) -> None:
        self._handed_out.append(Intercepted(exchange, header, b"".join(pieces)[LENGTH_SIZE:]))
        self._in_flight.add(exchange)
