"""RequestCutThrough: the request of a connection that is forwarded while it arrives."""

from typing import Final, final

from proxy.quota.verdict import Verdict
from proxy.relay.counters.traffic import Traffic
from proxy.relay.cut_through import CutThrough
from proxy.relay.cut_through_usage import CutThroughUsage
from proxy.relay.output import RelayOutput
from proxy.relay.requests.charges import RequestCharges
from proxy.relay.requests.parser import RequestParser
from proxy.relay.service_clock import ServiceClock
from proxy.wire.api_keys import PRODUCE
from proxy.wire.errors import Malformed
from proxy.wire.frames import CUT_THROUGH_BYTES, Frame
from proxy.wire.views import RequestView


@final
class RequestCutThrough:
    """For each part after the first: read_on(); charge(), if the part has items; forward()."""

    def __init__(
        self,
        output: RelayOutput,
        traffic: Traffic,
        parser: RequestParser,
        charges: RequestCharges,
        clock: ServiceClock,
    ) -> None:
        self._output: Final = output
        self._parser: Final = parser
        self._charges: Final = charges
        self._clock: Final = clock
        self._usage: Final = CutThroughUsage(traffic, inbound=True)
        self._cut: CutThrough | None = None
        self._charged_at = 0.0
        """When the last part of the request was charged."""

    @property
    def cut(self) -> CutThrough:
        """The request, from begin() to its last part."""
        cut = self._cut
        assert cut is not None, "a request is cut through"
        return cut

    @property
    def forwardable(self) -> int:
        """The number of following bytes that the proxy does not have to read."""
        cut = self._cut
        return 0 if cut is None else cut.forwardable

    def begin(self, cut: CutThrough, now: float) -> None:
        """Take a request that the quotas have admitted, and forward what may leave of its first part."""
        self._cut = cut
        self._charged_at = now
        self._output.send_to_broker(cut.take())
        if cut.view is not None:
            self._usage.begin(cut)
            self._usage.count_items(cut, cut.view)

    def read_on(self, part: Frame) -> RequestView | None:
        """Read the next part. Return the view if it has items that the quotas have not charged."""
        cut = self.cut
        cut.feed(part.pieces)
        view = cut.exchange.request
        api = cut.exchange.api
        if view is not None and api is not None:
            self._parser.read_on(cut, api, view, part.complete)
        return view if view is not None and view.items else None

    def charge(self, view: RequestView, now: float) -> Verdict:
        """Charge and count the items of a part, and remove them from the view."""
        cut = self.cut
        verdict = self._charges.charge_items(cut.exchange, view, now)
        self._charged_at = now
        self._usage.count_items(cut, view)
        return verdict

    def forward(self, complete: bool, now: float) -> None:
        """Forward what may leave of a part; `complete`: it is the last part.

        Raises Malformed if a field is too long to be kept until it is whole.
        """
        cut = self.cut
        self._output.send_to_broker(cut.take())
        if cut.view is not None and cut.waiting > CUT_THROUGH_BYTES:
            raise Malformed(f"a field of the request is longer than {CUT_THROUGH_BYTES} bytes")
        if complete:
            cut.exchange.sent_at = self._clock.at(now)
            self._usage.end(cut)
            self._cut = None

    def end(self) -> None:
        """Count the part of the request that has arrived, because the connection is over, and take back its
        charges: a broker appends nothing of it.
        """
        cut = self._cut
        if cut is None:
            return
        self._usage.end(cut)
        request = cut.exchange.request
        if request is not None and request.api_key == PRODUCE:
            self._charges.give_back_items(cut.exchange, request, self._charged_at)
