"""RequestAdmission: takes requests that have been read through the quotas, and forwards them to the broker.

On its way, a Produce request may lose partitions, wait for the names of its topics, or wait for a debt. A
fetch may wait for bytes. A request that is not complete is cut through.
"""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.verdict import Verdict
from proxy.relay.close_reasons import RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.cut_through import CutThrough
from proxy.relay.exchange import Exchange
from proxy.relay.fetch.gate import FetchGate
from proxy.relay.id_budget import IdBudget
from proxy.relay.inflight import InFlight
from proxy.relay.modes import (
    CLOSING,
    CUTTING_THROUGH,
    FETCH_WAITING,
    NAMES_WAITING,
    PRODUCE_WAITING,
    READING,
    Mode,
)
from proxy.relay.output import RelayOutput
from proxy.relay.requests.buffer import RequestBuffer
from proxy.relay.requests.charges import RequestCharges
from proxy.relay.requests.cut_through import RequestCutThrough
from proxy.relay.requests.debt_wait import DebtWait
from proxy.relay.requests.forwarder import RequestForwarder
from proxy.relay.requests.parser import RequestParser
from proxy.relay.requests.produce_gate import ProduceGate
from proxy.relay.requests.unnamed_topics import NO_TOPICS, TopicIds, UnnamedTopics, reject_part
from proxy.relay.requests.waiting_produce import WaitingProduce
from proxy.relay.settings import RelaySettings
from proxy.wire.api_keys import FETCH, PRODUCE, SHARE_FETCH
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView


@final
class RequestAdmission:
    """The admission of one connection. Requests come one after the other: none comes while one waits."""

    def __init__(
        self,
        engine: QuotaEngine,
        traffic: Traffic,
        in_flight: InFlight,
        output: RelayOutput,
        settings: RelaySettings,
        names: IdBudget,
        *,
        mode: Mode,
        parser: RequestParser,
        fetch_gate: FetchGate,
        buffer: RequestBuffer,
    ) -> None:
        """`mode`, `parser`, `fetch_gate` and `buffer` are those of Requests."""
        self._engine: Final = engine
        self._in_flight: Final = in_flight
        self._mode: Final = mode
        self._parser: Final = parser
        self._charges: Final = RequestCharges(engine, in_flight, names)
        self._forwarder: Final = RequestForwarder(output, traffic)
        self._cut_through: Final = RequestCutThrough(output, traffic, parser, self._charges)
        """In the mode CUTTING_THROUGH, it has the request that is forwarded while it arrives."""
        self.produce_gate: Final = ProduceGate(engine, in_flight, names, settings.protected)
        self._fetch_gate: Final = fetch_gate
        """In the mode FETCH_WAITING, it has the fetch that waits."""
        self._buffer: Final = buffer
        self._debt_wait: DebtWait | None = None
        """In the mode PRODUCE_WAITING, the request that waits; else None."""
        self._unnamed: Final = UnnamedTopics(engine, settings.topic_names, names)
        """In the mode NAMES_WAITING, it has the request that waits."""

    @property
    def waiting(self) -> bool:
        """Whether a request has been read and is neither answered nor forwarded."""
        return self._mode.now in (FETCH_WAITING, PRODUCE_WAITING, NAMES_WAITING)

    @property
    def waits_for_quotas(self) -> bool:
        """Whether a request has been read and waits for its quotas."""
        return self._mode.now in (FETCH_WAITING, PRODUCE_WAITING)

    @property
    def waits_for_debt(self) -> bool:
        """Whether Produce requests wait, here or unread, that are dropped if their client closes the
        connection.
        """
        wait = self._debt_wait
        if wait is not None:
            return wait.droppable
        return self._mode.now != CLOSING and self.produce_gate.mutes

    @property
    def wake_at(self) -> float:
        """When wake() is due; 0.0 for never."""
        mode = self._mode.now
        wait = self._debt_wait
        if wait is not None:
            return wait.wake_at
        if mode == FETCH_WAITING:
            return self._fetch_gate.wake_at
        return self._unnamed.wake_at if mode == NAMES_WAITING else 0.0

    @property
    def awaits_response(self) -> bool:
        """Whether a fetch that has waited for a response can continue, so that wake() is due."""
        return self._mode.now == FETCH_WAITING and self._fetch_gate.awaits_response

    @property
    def closing_error(self) -> RelayError:
        """In the mode CLOSING, why the connection ends."""
        return RelayError(self.produce_gate.closing_reason, self.produce_gate.closing)

    def take(self, frame: Frame, exchange: Exchange, reader: Reader, view: RequestView, now: float) -> None:
        """Take a request, or the first part of a large one, as far as it has been read into `view`."""
        if view.client_software:
            self.produce_gate.client_is(view.client_software)
        rejectable = view.rejectable or view.names_protected
        if view.api_key == PRODUCE:
            unnamed = self._unnamed.find(view, exchange.client)
            if len(unnamed) > 0:
                body_at = self._parser.body_at
                produce = WaitingProduce(
                    frame, exchange, reader, view, body_at=body_at, rejectable=rejectable
                )
                self._wait_for_names(produce, unnamed, now)
                return
        if rejectable and frame.complete and self._reject(frame, exchange, view, self._parser.body_at, now):
            return
        self._charge_and_forward(frame, exchange, reader, view, now)

    def take_unread(self, frame: Frame, exchange: Exchange, reader: Reader, now: float) -> None:
        """Take a request, or the first part of a large one, of an API that the proxy does not read."""
        self._in_flight.add(exchange)
        self._forward(frame, exchange, reader, None, now)

    def _charge_and_forward(
        self, frame: Frame, exchange: Exchange, reader: Reader, view: RequestView, now: float
    ) -> None:
        """Ask the quotas about a request that has been read, and forward it unless it must wait."""
        verdict = self._charges.admit(exchange, view, now)
        if verdict.ahead_seconds > 0.0:
            self._wait_for_debt(WaitingProduce(frame, exchange, reader, view), verdict, now)
            return
        fetches = view.api_key == FETCH or view.api_key == SHARE_FETCH
        if fetches and self._is_stopped(frame, exchange, view, now):
            return
        self._forward_read(frame, exchange, reader, view, now)

    def _reject(
        self,
        frame: Frame,
        exchange: Exchange,
        view: RequestView,
        body_at: int,
        now: float,
        unknown: TopicIds = NO_TOPICS,
    ) -> bool:
        """Remove the partitions that quotas reject; return whether none is left to be forwarded."""
        none_left = self.produce_gate.reject(frame, exchange, view, body_at, now, unknown)
        if none_left:
            self._close_if_due(now)
        return none_left

    def _close_if_due(self, now: float) -> None:
        """End the connection soon if batches of a producer without responses have been dropped, and the rest
        of their request has been forwarded.
        """
        if self.produce_gate.closing and self._mode.now == READING:
            self.produce_gate.delay_close(now)
            self._mode.change(CLOSING)

    def _is_stopped(self, frame: Frame, exchange: Exchange, view: RequestView, now: float) -> bool:
        """Return whether a fetch is not forwarded, because it waits for its quotas or has been answered."""
        gate = self._fetch_gate
        if not (self._engine.limits_fetches or gate.reads) or gate.forwards(frame, exchange, view, now):
            return False
        if gate.waiting:
            self._mode.change(FETCH_WAITING)
        return True

    def _forward_read(
        self, frame: Frame, exchange: Exchange, reader: Reader, view: RequestView, now: float
    ) -> None:
        if view.api_key == FETCH:
            exchange.streams = not view.bounded and not view.want_items and view.fetch_rewrite is None
        if view.acks == 0:
            self.produce_gate.await_silently(frame, exchange, view, self._parser.body_at)
        if view.acks != 0:
            self._in_flight.add(exchange)
        else:
            self._in_flight.count_throttle(exchange)
        self._forward(frame, exchange, reader, view, now)
        self._close_if_due(now)

    def wake(self, now: float) -> None:
        """Ask again for what the request waits for. Raises RelayError if a part of a large request has an
        unknown topic.
        """
        if self._mode.now == NAMES_WAITING:
            if self._unnamed.look(now):
                self._end_wait_for_names(now)
            return
        wait = self._debt_wait
        if wait is not None:
            if wait.review(self._engine, now):
                self._end_wait_for_debt(wait.produce, now)
            return
        if self._mode.now != FETCH_WAITING:
            return
        fetch = self._fetch_gate.wake(now)
        if not self._fetch_gate.waiting:
            self._mode.change(READING)
        if fetch is not None:
            self._forward_read(fetch.frame, fetch.exchange, self._parser.reader, fetch.view, now)

    def give_up_waiting(self, now: float) -> None:
        """Answer or forward the fetch that waits, if there is one."""
        if self._mode.now == FETCH_WAITING:
            fetch = self._fetch_gate.give_up(now)
            self._mode.change(READING)
            if fetch is not None:
                self._forward_read(fetch.frame, fetch.exchange, self._parser.reader, fetch.view, now)

    def _wait_for_names(self, produce: WaitingProduce, topic_ids: TopicIds, now: float) -> None:
        self._mode.change(NAMES_WAITING)
        self._unnamed.wait(produce, topic_ids, now)

    def _end_wait_for_names(self, now: float) -> None:
        """Continue with the request, or the part of it, that has waited; reject unknown topics."""
        produce = self._unnamed.produce
        assert produce is not None, "set in this mode"
        unknown = self._unnamed.end()
        frame, exchange, view = produce.frame, produce.exchange, produce.view
        if view.partial:
            reject_part(frame.size, unknown)
        if produce.cut is not None:
            self._mode.change(CUTTING_THROUGH)
            self._charge_part(frame, view, now)
            return
        self._mode.change(READING)
        rejectable = frame.complete and (produce.rejectable or len(unknown) > 0)
        if not (rejectable and self._reject(frame, exchange, view, produce.body_at, now, unknown)):
            self._charge_and_forward(frame, exchange, produce.reader, view, now)
        if frame.complete:
            self.end_buffered()

    def _wait_for_debt(self, produce: WaitingProduce, verdict: Verdict, now: float) -> None:
        self._mode.change(PRODUCE_WAITING)
        self._debt_wait = DebtWait(produce, verdict, now)

    def _end_wait_for_debt(self, produce: WaitingProduce, now: float) -> None:
        """Forward the request that has waited, or the rest of it."""
        self._debt_wait = None
        if produce.cut is not None:
            self._mode.change(CUTTING_THROUGH)
            self._forward_part(produce.frame.complete, now)
            return
        self._mode.change(READING)
        self._forward_read(produce.frame, produce.exchange, produce.reader, produce.view, now)
        if produce.frame.complete:
            self.end_buffered()

    def _forward(
        self, frame: Frame, exchange: Exchange, reader: Reader, view: RequestView | None, now: float
    ) -> None:
        if not frame.complete:
            self._mode.change(CUTTING_THROUGH)
            self._cut_through.begin(CutThrough(frame, exchange, reader, view), now)
            return
        self._forwarder.forward(frame, exchange, view, now)

    def read_on(self, part: Frame, now: float) -> None:
        """Read the next part of a request that is cut through, and forward the bytes that may leave."""
        view = self._cut_through.read_on(part)
        if view is None:
            self._forward_part(part.complete, now)
            return
        cut = self._cut_through.cut
        unnamed = self._unnamed.find(view, cut.exchange.client)
        if unnamed:
            produce = WaitingProduce(part, cut.exchange, cut.reader, view, cut=cut)
            self._wait_for_names(produce, unnamed, now)
        else:
            self._charge_part(part, view, now)

    def _charge_part(self, part: Frame, view: RequestView, now: float) -> None:
        """Charge the items in a part of a request that is cut through, and forward the bytes that
        may leave.
        """
        verdict = self._cut_through.charge(view, now)
        if verdict.ahead_seconds > 0.0:
            cut = self._cut_through.cut
            produce = WaitingProduce(part, cut.exchange, cut.reader, view, cut=cut)
            self._wait_for_debt(produce, verdict, now)
        else:
            self._forward_part(part.complete, now)

    def _forward_part(self, complete: bool, now: float) -> None:
        """Forward the bytes of a cut-through request that may leave; `complete`: its last part
        has arrived.
        """
        self._cut_through.forward(complete, now)
        if complete:
            self._mode.change(READING)

    def end_buffered(self) -> None:
        """Note that a complete request has been forwarded, answered or dropped, unless it waits: its memory
        is needed until the broker has taken it. An earlier request may still need the connection's memory.
        """
        if self._buffer.shared and self._mode.now not in (PRODUCE_WAITING, NAMES_WAITING):
            self._buffer.forwarded_large()

    def end(self) -> None:
        """Take back and count what is due for requests that have not been forwarded or answered, because the
        connection is over.
        """
        self._fetch_gate.end()
        if self._debt_wait is not None:
            self._debt_wait.drop(self._engine)
        self._cut_through.end()
        self._forwarder.end(self._in_flight.first)
