"""LateResponses: responses that arrive after the client has closed the connection.

The broker works on a request even if its client closes the connection meanwhile. Quotas by topic charge a
Produce request when it is read, and take this back if the broker does not append its records. Without the
response, a client that closes early could use up the limit of a topic to which it may not write. And
request_percentage charges each request on its response: a client that closes early would not be charged.
"""

from contextlib import suppress
from typing import Final, final

from mypy_extensions import i64 as native

from proxy.relay.budgets.read_turns import FREE_FRAMES, ReadTurns
from proxy.relay.counters.broker_errors import BrokerErrors
from proxy.relay.exchange import Exchange
from proxy.relay.inflight import InFlight
from proxy.relay.responses.charges import ResponseCharges
from proxy.wire.addresses import Addresses, UnknownBrokers
from proxy.wire.api_keys import PRODUCE
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import ProtocolError
from proxy.wire.frames import Frame, FrameSplitter
from proxy.wire.reader import Reader
from proxy.wire.views import ResponseView


@final
class LateResponses:
    """Reads the rest of what the broker of one connection sends."""

    def __init__(
        self,
        splitter: FrameSplitter,
        in_flight: InFlight,
        charges: ResponseCharges,
        addresses: Addresses,
        errors: BrokerErrors,
        turns: ReadTurns,
        *,
        by_time: bool,
    ) -> None:
        """`splitter`: the one that has read the responses so far. `by_time`: whether quotas charge the time
        of requests.
        """
        self._splitter: Final = splitter
        self._in_flight: Final = in_flight
        self._charges: Final = charges
        self._addresses: Final = addresses
        self._errors: Final = errors
        self._turns: Final = turns
        self._by_time: Final = by_time
        self._within_frame = splitter.in_frame
        """Whether the rest of a frame is skipped."""
        self._over = False
        """Whether the broker has sent bytes that do not parse, so that nothing more is read."""

    @property
    def awaited(self) -> bool:
        """Whether a response is due that quotas need."""
        exchange = self._in_flight.first
        while exchange is not None and not self._over:
            if not exchange.local and (self._by_time or exchange.api_key == PRODUCE):
                return True
            exchange = exchange.next
        return False

    def receive(self, data: bytes, now: float) -> bool:
        """Take bytes from the broker, or none, to continue with what has arrived. Return whether bytes remain
        to be read in a later turn of the event loop. Skip the rest if they do not parse.
        """
        if self._over:
            return False
        if data:
            self._splitter.feed(data)
        read: native = 0
        try:
            frame = self._splitter.next()
            while frame is not None:
                self._read(frame, now)
                read += 1
                if read >= FREE_FRAMES and not self._turns.take(1, now):
                    return self._splitter.buffered > 0
                frame = self._splitter.next()
        except ProtocolError:
            self._over = True
        return False

    def _read(self, frame: Frame, now: float) -> None:
        if self._within_frame:
            self._within_frame = not frame.complete
            if frame.complete:
                self._charges.responded(now)
            return
        self._within_frame = not frame.complete
        reader = Reader(frame.pieces, LENGTH_SIZE)
        exchange = self._in_flight.take_late_response(reader.i32())
        if frame.complete and exchange.api_key == PRODUCE:
            view = read_unsent(frame, reader, exchange, self._charges, self._addresses, now)
            if view is not None:
                self._errors.take(PRODUCE, view)
        elif self._by_time and exchange.api_key != PRODUCE and exchange.sent_at > 0.0:
            self._charges.charge_time(exchange, now)
        if frame.complete:
            self._charges.responded(now)


def read_unsent(
    frame: Frame,
    reader: Reader,
    exchange: Exchange,
    charges: ResponseCharges,
    addresses: Addresses,
    now: float,
) -> ResponseView | None:
    """Charge the response to a Produce request that no client gets; `reader` is behind its correlation_id.
    Return its view; None if the proxy does not read the request.
    """
    api = exchange.api
    request = exchange.request
    if api is None or request is None:
        return None
    if api.flexible_response_header(request.api_version):
        reader.skip_tags()
    view = ResponseView(request.api_version, request.flexible, frame.size - reader.offset, True)
    with suppress(UnknownBrokers):  # NodeEndpoints come last, when the partitions have been read
        api.read_response(reader, request, view, addresses)
    charges.charge(exchange, request, view, now)
    return view
