"""RequestForwarder: gives whole requests to the broker, and counts what it gives."""

from typing import Final, final

from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange
from proxy.relay.output import RelayOutput
from proxy.relay.produced_records import abandon_records, send_records
from proxy.relay.service_clock import ServiceClock
from proxy.wire.api_keys import PRODUCE
from proxy.wire.edit import LENGTH_SIZE, apply, with_length
from proxy.wire.frames import Frame
from proxy.wire.views import RequestView


@final
class RequestForwarder:
    """The forwarder of one connection. Times are the relay's `now`."""

    def __init__(self, output: RelayOutput, traffic: Traffic, clock: ServiceClock) -> None:
        self._output: Final = output
        self._traffic: Final = traffic
        self._clock: Final = clock

    def forward(self, frame: Frame, exchange: Exchange, view: RequestView | None, now: float) -> None:
        """Forward a whole request with its edits; `view` is None if the proxy does not read it."""
        exchange.sent_at = self._clock.at(now)
        if view is None or not view.edited:
            self._output.forward_to_broker(frame)
        else:
            edits = with_length(view.edits, frame.size - LENGTH_SIZE)
            self._output.send_to_broker(apply(frame.pieces, edits))
        if exchange.api_key == PRODUCE and view is not None and self._traffic.want_items:
            send_records(self._traffic, exchange.client, view)

    def end(self, first: Exchange | None) -> None:
        """Count the records of the requests in flight, whose connection is over; `first` is the oldest."""
        abandon_records(self._traffic, first)
