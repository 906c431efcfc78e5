"""RequestForwarder: gives requests to the broker, whole or while they arrive, and counts what it gives."""

from typing import Final, final

from proxy.relay.cut_through import CutThrough
from proxy.relay.cut_through_usage import CutThroughUsage
from proxy.relay.exchange import Exchange
from proxy.relay.output import RelayOutput
from proxy.relay.produced_records import ProducedRecords
from proxy.relay.traffic import Traffic
from proxy.wire.api_keys import PRODUCE
from proxy.wire.edit import LENGTH_SIZE, apply, with_length
from proxy.wire.errors import Malformed
from proxy.wire.frames import CUT_THROUGH_BYTES, Frame
from proxy.wire.views import RequestView


@final
class RequestForwarder:
    """Of one connection. Times are the relay's `now`."""

    def __init__(self, output: RelayOutput, traffic: Traffic) -> None:
        self._output: Final = output
        self._traffic: Final = traffic
        self._usage: Final = CutThroughUsage(traffic, inbound=True)
        self._produced: Final = ProducedRecords(traffic)

    def forward(self, frame: Frame, exchange: Exchange, view: RequestView | None, now: float) -> None:
        """Forward a whole request with its edits; `view` is None if the proxy does not read it."""
        exchange.sent_at = now
        if view is None or not view.edited:
            self._output.send_to_broker(frame.pieces)
        else:
            edits = with_length(view.edits, frame.size - LENGTH_SIZE)
            self._output.send_to_broker(apply(frame.pieces, edits))
        if exchange.api_key == PRODUCE and view is not None and self._traffic.want_items:
            self._produced.send(exchange.client, view)

    def begin(self, cut: CutThrough) -> None:
        """Forward what may leave of the first part of a request that is cut through."""
        self._output.send_to_broker(cut.take())
        if cut.view is not None:
            self._usage.begin(cut)
            self._usage.count_items(cut, cut.view)

    def count_items(self, cut: CutThrough, view: RequestView) -> None:
        """Count the items that the quotas have charged, and let go of them."""
        self._usage.count_items(cut, view)

    def forward_part(self, cut: CutThrough, complete: bool, now: float) -> None:
        """Forward what may leave of a later part; `complete`: it is the last part.

        Raises Malformed if a field is too long to be kept until it is whole.
        """
        self._output.send_to_broker(cut.take())
        if cut.view is not None and cut.waiting > CUT_THROUGH_BYTES:
            raise Malformed(f"a field of the request is longer than {CUT_THROUGH_BYTES} bytes")
        if complete:
            cut.exchange.sent_at = now
            self._usage.end(cut)

    def end(self, cut: CutThrough | None, first: Exchange | None) -> None:
        """The connection is over: `cut` is the request that is cut through, `first` the oldest in flight."""
        if cut is not None:
            self._usage.end(cut)
        self._produced.abandon(first)
