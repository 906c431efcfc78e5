"""Gives a whole request to the broker, and counts what it gives."""

from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange
from proxy.relay.output import RelayOutput
from proxy.relay.produced_records import send_records
from proxy.wire.api_keys import PRODUCE
from proxy.wire.edit import LENGTH_SIZE, apply, with_length
from proxy.wire.frames import Frame
from proxy.wire.views import RequestView


def forward_request(
    output: RelayOutput, traffic: Traffic, frame: Frame, exchange: Exchange, view: RequestView | None
) -> None:
    """Forward a whole request with its edits; `view` is None if the proxy does not read it."""
    if view is None or not view.edited:
        output.forward_to_broker(frame)
    else:
        edits = with_length(view.edits, frame.size - LENGTH_SIZE)
        output.send_to_broker(apply(frame.pieces, edits))
    if exchange.api_key == PRODUCE and view is not None and traffic.want_items:
        send_records(traffic, exchange.client, view)
