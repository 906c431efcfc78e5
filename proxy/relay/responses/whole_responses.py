"""WholeResponses: the responses of a connection that have arrived completely."""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.relay.close_reasons import BROKER_CLOSED, RelayError
from proxy.relay.counters.broker_errors import BrokerErrors
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange
from proxy.relay.inflight import InFlight
from proxy.relay.produced_records import settle_records
from proxy.relay.responses.charges import ResponseCharges
from proxy.relay.responses.late_responses import read_unsent
from proxy.relay.responses.withheld_responses import WithheldResponses
from proxy.wire.addresses import Addresses
from proxy.wire.api_keys import PRODUCE
from proxy.wire.apis.api import Api
from proxy.wire.apis.rejected_partitions import restore
from proxy.wire.cursor import AMPLE_ROOM
from proxy.wire.edit import LENGTH_SIZE, apply, with_length
from proxy.wire.error_codes import appended
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.spare_items import SpareItems
from proxy.wire.views import RequestView, ResponseView


@final
class WholeResponses:
    """Reads them, charges them, and sends them to the client. ResponseCutThrough does so for a response that
    is forwarded while it arrives.
    """

    def __init__(
        self,
        *,
        traffic: Traffic,
        in_flight: InFlight,
        charges: ResponseCharges,
        addresses: Addresses,
        errors: BrokerErrors,
        spare_items: SpareItems,
    ) -> None:
        self._traffic: Final = traffic
        self._in_flight: Final = in_flight
        self._charges: Final = charges
        self._addresses: Final = addresses
        self._errors: Final = errors
        self._spare_items: Final = spare_items

    def read(
        self,
        frame: Frame,
        reader: Reader,
        exchange: Exchange,
        *,
        api: Api,
        request: RequestView,
        view: ResponseView,
        now: float,
    ) -> native:
        """Read the body of a response into its new view, and send the response. Return the number of
        partitions that were read.

        Raises UnknownBrokers if the response names brokers without ports. Nothing has been charged then, and
        the response can be read again with another view.
        """
        self._spare_items.lend(view)
        api.read_response(reader, request, view, self._addresses)
        self._spare_items.settle(view)
        # `room` has counted down from AMPLE_ROOM.
        partitions = AMPLE_ROOM - view.cursor.room
        if view.errors is not None:
            self._errors.take(exchange.api_key, view)
        if exchange.grant is not None and self._withholds(frame, exchange, request, view, now):
            self._uncount(frame, exchange)
        else:
            self._charge_and_send(frame, exchange, request, view, now)
        self._in_flight.send_local()
        return partitions

    def _withholds(
        self, frame: Frame, exchange: Exchange, request: RequestView, view: ResponseView, now: float
    ) -> bool:
        return WithheldResponses(self._traffic, self._charges).withhold(frame, exchange, request, view, now)

    def read_silent(self, frame: Frame, reader: Reader, exchange: Exchange, now: float) -> None:
        """Read the response to a Produce request of a client that expects none. Raises RelayError if the
        broker has not appended all of its records: a broker closes the connection then.
        """
        self._traffic.total.bytes_out -= frame.size
        view = read_unsent(frame, reader, exchange, self._charges, self._addresses, now)
        request = exchange.request
        assert view is not None, "the relay has read the request"
        self._errors.take(exchange.api_key, view)
        assert request is not None, "the same"
        if self._traffic.want_items:
            settle_records(self._traffic, exchange.client, request, view.items)
        self._in_flight.send_local()
        for item in view.items:
            if not appended(item.error_code):
                raise RelayError(
                    BROKER_CLOSED,
                    f"the broker rejects records of a producer with acks=0 (error {item.error_code}), and "
                    "closes such a connection",
                )

    def _uncount(self, frame: Frame, exchange: Exchange) -> None:
        """Take back what was counted of a response of the broker that the client does not get."""
        self._traffic.total.bytes_out -= frame.size
        if exchange.client.usage is not None:
            exchange.client.usage.count_out(exchange.api_key, -frame.size)

    def _charge_and_send(
        self, frame: Frame, exchange: Exchange, request: RequestView, view: ResponseView, now: float
    ) -> None:
        """Charge a response that has been read, and send it with the edits of its view."""
        if exchange.rejection is not None:
            restore(frame.pieces, frame.size - view.body_size, view, exchange.rejection)
        self._charges.settle(exchange, request, view, now)
        if exchange.throttled_seconds > 0.0:
            self._in_flight.count_throttle(exchange)
        if view.edited:
            self._in_flight.send(apply(frame.pieces, with_length(view.edits, frame.size - LENGTH_SIZE)))
        else:
            self._in_flight.send_frame(frame)
        if self._traffic.want_items:
            self._count_items(exchange, request, view)
        self._spare_items.take_back(view)
        self._spare_items.take_back(request)

    def _count_items(self, exchange: Exchange, request: RequestView, view: ResponseView) -> None:
        if request.api_key == PRODUCE:
            settle_records(self._traffic, exchange.client, request, view.items)
            return
        self._traffic.count_out(view.items)
        usage = exchange.client.usage
        if usage is not None:
            usage.divide_out(exchange.api_key, view.items)
