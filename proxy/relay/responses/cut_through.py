"""ResponseCutThrough: the response of a connection that is forwarded while it arrives."""

from typing import Final, final

from proxy.relay.counters.broker_errors import BrokerErrors
from proxy.relay.counters.traffic import Traffic
from proxy.relay.cut_through import CutThrough
from proxy.relay.cut_through_usage import CutThroughUsage
from proxy.relay.inflight import InFlight
from proxy.relay.produced_records import abandon_request, settle_records
from proxy.relay.responses.charges import ResponseCharges
from proxy.relay.responses.withheld_responses import WithheldResponses
from proxy.wire.addresses import Addresses
from proxy.wire.api_keys import PRODUCE
from proxy.wire.apis.api import Api
from proxy.wire.errors import Short
from proxy.wire.views import RequestView, ResponseView


@final
class ResponseCutThrough:
    """For the first part: begin() and read(); for each other part: add() and read()."""

    def __init__(
        self,
        *,
        traffic: Traffic,
        in_flight: InFlight,
        charges: ResponseCharges,
        addresses: Addresses,
        errors: BrokerErrors,
    ) -> None:
        self._traffic: Final = traffic
        self._in_flight: Final = in_flight
        self._charges: Final = charges
        self._addresses: Final = addresses
        self._errors: Final = errors
        self._usage: Final = CutThroughUsage(traffic, inbound=False)
        self._cut: CutThrough | None = None
        """The response, from begin() to its last part."""

    @property
    def active(self) -> bool:
        """Whether a part of a response has arrived, and the last one has not."""
        return self._cut is not None

    @property
    def forwardable(self) -> int:
        """The number of following bytes that the proxy does not have to read."""
        cut = self._cut
        return 0 if cut is None else cut.forwardable

    def forwarded(self, size: int) -> None:
        """Note that bytes, of those that are forwardable, have gone to the client."""
        cut = self._cut
        assert cut is not None, "nothing else is forwardable"
        cut.forwarded(size)

    def begin(self, cut: CutThrough) -> None:
        """Take the first part of a response."""
        self._cut = cut
        if cut.view is not None:
            self._usage.begin(cut)
        self._in_flight.begin_response()

    def add(self, pieces: list[bytes]) -> None:
        """Take the next part of the response, or nothing, to read what has arrived again."""
        cut = self._cut
        assert cut is not None, "begin() has set it"
        if cut.withheld:
            self._drop(pieces)
        else:
            cut.feed(pieces)

    def read(self, now: float) -> bool:
        """Read what has arrived, and forward the bytes that may leave. Return whether it is the last part.

        Raises UnknownBrokers if the response names brokers without ports.
        """
        cut = self._cut
        assert cut is not None, "begin() has set it"
        if not cut.withheld:
            self._read_view(cut, now)
        if not cut.withheld:
            self._in_flight.send(cut.take())
        if not cut.frame.complete:
            return False
        self._cut = None
        self._in_flight.count_throttle(cut.exchange)
        self._in_flight.end_response()
        self._usage.end(cut)
        self._in_flight.send_local()
        return True

    def _read_view(self, cut: CutThrough, now: float) -> None:
        view = cut.view
        request = cut.exchange.request
        api = cut.exchange.api
        if not isinstance(view, ResponseView) or request is None or api is None:
            return
        if not view.cursor.done:
            self._parse(cut, api, request, view)
            self._errors.take(cut.exchange.api_key, view)
        if not cut.settled:
            if cut.has_read(view.throttle_at):
                cut.settled = True
                self._settle(cut, request, view, now)
        elif view.items:
            self._charges.charge_items(cut.exchange, request, view, now)
            self._usage.count_items(cut, view)

    def _parse(self, cut: CutThrough, api: Api, request: RequestView, view: ResponseView) -> None:
        try:
            api.read_response(cut.reader, request, view, self._addresses)
        except Short:
            if cut.frame.complete:
                raise

    def _settle(self, cut: CutThrough, request: RequestView, view: ResponseView, now: float) -> None:
        """Charge the response, whose throttle_time_ms can still be changed, or withhold it."""
        withheld = WithheldResponses(self._traffic, self._charges)
        if cut.at_start and withheld.withhold(cut.frame, cut.exchange, request, view, now):
            cut.withheld = True
            cut.uncounted = 0
            self._drop(cut.frame.pieces)
            return
        self._charges.settle(cut.exchange, request, view, now)
        if request.api_key == PRODUCE and self._traffic.want_items:
            settle_records(self._traffic, cut.exchange.client, request, view.items)
        self._usage.count_items(cut, view)

    def _drop(self, pieces: list[bytes]) -> None:
        """Drop a part of a response that the client does not get."""
        for piece in pieces:
            self._traffic.total.bytes_out -= len(piece)

    def end(self) -> None:
        """Count the part of the response that has arrived, because the connection is over."""
        cut = self._cut
        if cut is not None:
            self._usage.end(cut)
            if not cut.settled:
                abandon_request(self._traffic, cut.exchange)
