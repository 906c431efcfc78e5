"""CutThroughUsage: counts the bytes of a large frame, by partition, while the relay forwards them."""

from typing import Final, final

from proxy.relay.counters.traffic import Traffic
from proxy.relay.cut_through import CutThrough
from proxy.relay.produced_records import send_items
from proxy.wire.views import RequestView, View


@final
class CutThroughUsage:
    """The usage of one direction of a connection."""

    __slots__ = ("_inbound", "_traffic")

    def __init__(self, traffic: Traffic, *, inbound: bool) -> None:
        """`inbound`: whether the direction is towards the broker."""
        self._traffic: Final = traffic
        self._inbound: Final = inbound

    def begin(self, frame: CutThrough) -> None:
        """Take back the bytes of a frame that have been counted as a whole."""
        size = frame.frame.size
        self._count(frame, -size)
        frame.uncounted = size

    def count_items(self, frame: CutThrough, view: View) -> None:
        """Count the items that the quotas have judged, and release them."""
        if not view.items:
            return
        usage = frame.exchange.client.usage
        api_key = frame.exchange.api_key
        if self._inbound and isinstance(view, RequestView):
            size = send_items(self._traffic, frame.exchange.client, view)
            if usage is not None:
                frame.uncounted -= size
        else:
            self._traffic.count_out(view.items)
            if usage is not None:
                frame.uncounted -= usage.records_out(api_key, view.items)
        view.items = []

    def end(self, frame: CutThrough) -> None:
        """Count the bytes that belong to no partition, or have not arrived."""
        if frame.uncounted != 0:
            self._count(frame, frame.uncounted)
            frame.uncounted = 0

    def _count(self, frame: CutThrough, size: int) -> None:
        usage = frame.exchange.client.usage
        if usage is None:
            return
        if self._inbound:
            usage.count_in(frame.exchange.api_key, size)
        else:
            usage.count_out(frame.exchange.api_key, size)
