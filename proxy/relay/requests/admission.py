"""RequestAdmission: takes requests that have been read through the quotas, and forwards them to the broker.

A request takes these steps:

    names       A Produce request waits for names of its topics, if quotas need them (UnnamedTopics).
    rejection   Partitions are removed from a Produce request that is complete. If none is left, it is
                answered (ProduceGate).
    charge      The quotas are charged. A Produce request may wait for an earlier debt (DebtWait).
    gate        A fetch may wait for bytes, or is answered (FetchGate). A list that has waited then waits for
                its turn (ListGate).
    forward     A complete request is forwarded as a whole; any other is cut through from its first part on.

The parts after the first one take the steps names, charge and forward. What has waited continues with the
next step.
"""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.verdict import Verdict
from proxy.relay.budgets.id_budget import IdBudget
from proxy.relay.budgets.list_turns import LIST_BYTES
from proxy.relay.close_reasons import RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.cut_through import CutThrough
from proxy.relay.exchange import Exchange
from proxy.relay.fetch.gate import FetchGate, WaitingFetch
from proxy.relay.inflight import InFlight
from proxy.relay.modes import (
    CLOSING,
    CUTTING_THROUGH,
    FETCH_WAITING,
    FIRST_WAITING,
    NAMES_WAITING,
    PRODUCE_WAITING,
    READING,
    Mode,
)
from proxy.relay.output import RelayOutput
from proxy.relay.produced_records import abandon_records
from proxy.relay.requests.buffer import RequestBuffer
from proxy.relay.requests.charges import RequestCharges
from proxy.relay.requests.cut_through import RequestCutThrough
from proxy.relay.requests.debt_wait import DebtWait, behind_event
from proxy.relay.requests.forwarder import forward_request
from proxy.relay.requests.list_gate import ListGate
from proxy.relay.requests.parser import RequestParser
from proxy.relay.requests.produce_gate import ProduceGate, await_silently
from proxy.relay.requests.unnamed_topics import (
    NO_TOPICS,
    TopicIds,
    UnnamedTopics,
    reject_part,
    unnamed_topics,
)
from proxy.relay.requests.waiting_produce import WaitingProduce
from proxy.relay.settings import RelaySettings
from proxy.wire.api_keys import FETCH, PRODUCE, SHARE_FETCH
from proxy.wire.client_software import retries_throttling
from proxy.wire.fetch.session_sizes import NOT_KNOWN
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
        *,
        mode: Mode,
        parser: RequestParser,
        session_mask: int,
    ) -> None:
        """`mode` and `parser` are those of Requests. `session_mask`: the bits in which the client's fetch
        session ids differ from the broker's.
        """
        self._engine: Final = engine
        self._in_flight: Final = in_flight
        self._mode: Final = mode
        self._parser: Final = parser
        self._charges: Final = RequestCharges(engine, in_flight, settings.topic_names)
        self._settings: Final = settings
        self._output: Final = output
        self._traffic: Final = traffic
        self._large: RequestCutThrough | None = None
        """In the mode CUTTING_THROUGH, it has the request that is forwarded while it arrives. Created with
        the first one.
        """
        self._session_mask: Final = session_mask
        self._retries_throttling = False
        """Whether the client is known to retry THROTTLING_QUOTA_EXCEEDED."""
        self._produce_gate: ProduceGate | None = None
        """None before the first Produce request of which partitions may be rejected."""
        self._fetch_gate: FetchGate | None = None
        """None before the first fetch that quotas may limit. In the mode FETCH_WAITING, it has the fetch that
        waits, unless `_passed` is that.
        """
        self._id_budget: IdBudget | None = None
        """None before the first request that may wait for names."""
        self._passed: WaitingFetch | None = None
        """The fetch that has left its gate and waits for its turn, because it is a list."""
        self.list_gate: ListGate | None = None
        """None before the connection's first list."""
        self.buffer: RequestBuffer | None = None
        """None before the connection's first large request."""
        self._debt_wait: DebtWait | None = None
        """In the mode PRODUCE_WAITING, the request that waits; else None."""
        self._unnamed: UnnamedTopics | None = None
        """In the mode NAMES_WAITING, it has the request that waits; else None."""

    @property
    def waiting(self) -> bool:
        """Whether a request has been read and is neither answered nor forwarded."""
        return self._mode.now in (FETCH_WAITING, PRODUCE_WAITING, NAMES_WAITING, FIRST_WAITING)

    @property
    def waits_for_quotas(self) -> bool:
        """Whether a request has been read and waits for its quotas."""
        return self._passed is None and self._mode.now in (FETCH_WAITING, PRODUCE_WAITING, FIRST_WAITING)

    @property
    def waits_for_debt(self) -> bool:
        """Whether requests wait, here or unread, that are dropped if their client closes the connection."""
        if self._mode.now == FIRST_WAITING:
            return True
        wait = self._debt_wait
        if wait is not None:
            return wait.droppable
        gate = self._produce_gate
        return self._mode.now != CLOSING and gate is not None and gate.mutes

    @property
    def wake_at(self) -> float:
        """When wake() is due; 0.0 for never."""
        mode = self._mode.now
        if mode == FETCH_WAITING:
            if self._passed is not None and self.list_gate is not None:
                return self.list_gate.asks_at
            return 0.0 if self._fetch_gate is None else self._fetch_gate.wake_at
        if mode == NAMES_WAITING:
            return 0.0 if self._unnamed is None else self._unnamed.wake_at
        return 0.0 if self._debt_wait is None else self._debt_wait.wake_at

    @property
    def awaits_response(self) -> bool:
        """Whether a request that has waited for a response may continue, so that wake() is due."""
        if self._debt_wait is not None:
            return self._debt_wait.awaits_response
        gate = self._fetch_gate
        return self._mode.now == FETCH_WAITING and gate is not None and gate.awaits_response

    @property
    def reads_fetches(self) -> bool:
        """Whether fetches must be read beyond their bounds."""
        if self._fetch_gate is not None:
            return self._fetch_gate.reads
        return self._engine.omits or self._settings.between_brokers

    @property
    def follower(self) -> tuple[int, int] | None:
        """The node id of the follower at the client's end, and the number of messages that it lacks."""
        return None if self._fetch_gate is None else self._fetch_gate.follower

    @property
    def closing_error(self) -> RelayError:
        """In the mode CLOSING, why the connection ends."""
        gate = self._gate_of_produce()
        return RelayError(gate.closing_reason, gate.closing)

    def _gate_of_produce(self) -> ProduceGate:
        gate = self._produce_gate
        if gate is None:
            settings = self._settings
            gate = ProduceGate(self._engine, self._in_flight, settings.topic_names, settings.protected)
            self._produce_gate = gate
        return gate

    def _gate_of_fetches(self) -> FetchGate:
        gate = self._fetch_gate
        if gate is None:
            gate = self._fetch_gate = FetchGate(
                self._engine,
                self._in_flight,
                self._budget(),
                self._settings.plan_turns,
                self._settings.between_brokers,
                self._session_mask,
            )
        return gate

    def _budget(self) -> IdBudget:
        budget = self._id_budget
        if budget is None:
            budget = self._id_budget = IdBudget(self._settings.topic_names)
        return budget

    @property
    def _cut_through(self) -> RequestCutThrough:
        large = self._large
        assert large is not None, "a request is cut through"
        return large

    # The steps of a request

    def take(self, frame: Frame, exchange: Exchange, reader: Reader, view: RequestView, now: float) -> None:
        """Take a request, or the first part of a large one, as far as it has been read into `view`."""
        if view.client_software:
            self._retries_throttling = retries_throttling(view.client_software)
        if view.api_key == PRODUCE:
            unnamed = unnamed_topics(self._engine, self._settings.topic_names, view, exchange.client)
            if len(unnamed) > 0:
                self._wait_for_names(WaitingProduce(frame, exchange, reader, view), unnamed, now)
                return
        self._take_named(frame, exchange, reader, view, NO_TOPICS, now)

    def take_unread(self, frame: Frame, exchange: Exchange, reader: Reader, now: float) -> None:
        """Take a request, or the first part of a large one, of an API that the proxy does not read."""
        self._in_flight.add(exchange)
        self._forward(frame, exchange, reader, None, now)

    def _take_named(
        self,
        frame: Frame,
        exchange: Exchange,
        reader: Reader,
        view: RequestView,
        unknown: TopicIds,
        now: float,
    ) -> None:
        """Take the steps after the names; the cluster does not have the topics `unknown`."""
        if frame.complete and self._may_reject(view, unknown, now):
            body_at = self._parser.body_at
            retries = self._retries_throttling
            if self._gate_of_produce().reject(frame, exchange, view, body_at, now, unknown, retries):
                self._close_if_due(now)
                return
        verdict = self._charges.admit(exchange, view, now)
        if verdict.ahead_seconds > 0.0 or behind_event(view, self._in_flight):
            self._wait_for_debt(WaitingProduce(frame, exchange, reader, view), verdict, now)
            return
        fetches = view.api_key == FETCH or view.api_key == SHARE_FETCH
        if not fetches or self._passes_gate(frame, exchange, view, now):
            self._forward_read(frame, exchange, reader, view, now)

    def _may_reject(self, view: RequestView, unknown: TopicIds, now: float) -> bool:
        """Whether partitions of a Produce request may be rejected."""
        if view.names_protected or len(unknown) > 0:
            return True
        return view.rejectable and self._engine.may_reject(now)

    def _passes_gate(self, frame: Frame, exchange: Exchange, view: RequestView, now: float) -> bool:
        """Return whether to forward a fetch. If not, it waits for its quotas, or has been answered."""
        if view.partitions == NOT_KNOWN and self._engine.limits_time(exchange.client):
            self._gate_of_fetches().reject_session(exchange, view, now)
            return False
        if not (self._engine.limits_fetches or self.reads_fetches):
            return True
        gate = self._gate_of_fetches()
        if gate.forwards(frame, exchange, view, now):
            return True
        if gate.waiting:
            self._mode.change(FETCH_WAITING)
        return False

    def _forward_read(
        self, frame: Frame, exchange: Exchange, reader: Reader, view: RequestView, now: float
    ) -> None:
        if view.api_key == FETCH:
            exchange.streams = not view.bounded and view.fetch_rewrite is None
        if view.acks == 0 and self._engine.limits_topics(exchange.client):
            await_silently(frame, exchange, view, self._parser.body_at)  # changes acks
        if view.acks != 0:
            self._in_flight.add(exchange)
            if view.uncharged:
                self._in_flight.await_append(exchange)
        else:
            self._in_flight.count_throttle(exchange)
        self._forward(frame, exchange, reader, view, now)
        self._close_if_due(now)

    def _forward(
        self, frame: Frame, exchange: Exchange, reader: Reader, view: RequestView | None, now: float
    ) -> None:
        if frame.complete:
            exchange.sent_at = self._settings.service_clock.at(now)
            forward_request(self._output, self._traffic, frame, exchange, view)
            return
        if self._large is None:
            self._large = RequestCutThrough(
                self._output, self._traffic, self._parser, self._charges, self._settings.service_clock
            )
        self._mode.change(CUTTING_THROUGH)
        self._large.begin(CutThrough(frame, exchange, reader, view), now)

    def _close_if_due(self, now: float) -> None:
        """End the connection soon if batches of a producer without responses have been dropped, and the rest
        of their request has been forwarded.
        """
        gate = self._produce_gate
        if gate is not None and gate.closing and self._mode.now == READING:
            gate.delay_close(now)
            self._mode.change(CLOSING)

    def end_buffered(self) -> None:
        """Note that a complete request has been forwarded, answered or dropped, unless it waits, or the proxy
        works on it: its memory is needed until the broker has taken it. An earlier request may still need the
        connection's memory.
        """
        buffer = self.buffer
        if buffer is None or not buffer.shared:
            return
        waits = self._mode.now in (PRODUCE_WAITING, NAMES_WAITING, FIRST_WAITING)
        if not waits and not self._in_flight.handles:
            buffer.forwarded_large()

    def all_read(self, more_waits: bool, now: float) -> None:
        """Note that all bytes of the client that have arrived have been read; see ProduceGate.all_read()."""
        if self._produce_gate is not None:
            self._produce_gate.all_read(more_waits, now)

    # The steps of the parts after the first one

    def read_on(self, part: Frame, now: float) -> None:
        """Read the next part of a request that is cut through, and forward the bytes that may leave."""
        view = self._cut_through.read_on(part)
        if view is None:
            self._forward_part(part.complete, now)
            return
        client = self._cut_through.cut.exchange.client
        unnamed = unnamed_topics(self._engine, self._settings.topic_names, view, client)
        if len(unnamed) > 0:
            self._wait_for_names(self._waiting_part(part, view), unnamed, now)
        else:
            self._charge_part(part, view, now)

    def _charge_part(self, part: Frame, view: RequestView, now: float) -> None:
        """Take the steps after the names."""
        verdict = self._cut_through.charge(view, now)
        if verdict.ahead_seconds > 0.0 or behind_event(view, self._in_flight):
            self._wait_for_debt(self._waiting_part(part, view), verdict, now)
        else:
            self._forward_part(part.complete, now)

    def _forward_part(self, complete: bool, now: float) -> None:
        """Forward the bytes that may leave; `complete`: the last part has arrived."""
        exchange = self._cut_through.cut.exchange
        self._cut_through.forward(complete, now)
        if complete:
            if exchange.request is not None and exchange.request.uncharged:
                self._in_flight.await_append(exchange)
            self._mode.change(READING)

    def _waiting_part(self, part: Frame, view: RequestView) -> WaitingProduce:
        cut = self._cut_through.cut
        return WaitingProduce(part, cut.exchange, cut.reader, view, begun=True)

    @property
    def forwardable(self) -> int:
        """The number of following bytes of a request that the proxy does not have to read."""
        cutting = self._large is not None and self._mode.now == CUTTING_THROUGH
        return self._cut_through.forwardable if cutting else 0

    def forwarded(self, size: int) -> None:
        """Note that bytes, of those that are forwardable, have gone to the broker."""
        self._cut_through.cut.forwarded(size)

    # Waits

    def wake(self, now: float) -> None:
        """Ask again for what the request waits for. Raises RelayError if a part of a large request has an
        unknown topic.
        """
        if self._unnamed is not None:
            if self._unnamed.look(now):
                self._end_wait_for_names(self._unnamed, now)
        elif self._passed is not None:
            self._forward_in_turn(self._passed, now)
        elif self._mode.now == FETCH_WAITING:
            self._continue_fetch(self._gate_of_fetches(), now)
        elif self._debt_wait is not None and self._debt_wait.review(self._engine, now):
            self._end_wait_for_debt(self._debt_wait.produce, now)

    def give_up_waiting(self, now: float) -> None:
        """Answer or forward the fetch that waits, if there is one."""
        if self._mode.now != FETCH_WAITING:
            return
        fetch = self._passed
        if fetch is None:
            fetch = self._gate_of_fetches().give_up(now)
        elif self.list_gate is not None:
            self.list_gate.give_up()
        if fetch is None:
            self._mode.change(READING)
        else:
            self._forward_passed(fetch, now)

    def _continue_fetch(self, gate: FetchGate, now: float) -> None:
        """Forward the fetch that waits, in its turn, unless it waits on or is answered."""
        fetch = gate.wake(now)
        if fetch is not None:
            self._forward_in_turn(fetch, now)
        elif not gate.waiting:
            self._mode.change(READING)

    def _forward_in_turn(self, fetch: WaitingFetch, now: float) -> None:
        """Forward a fetch that has left its gate, or have it wait for its turn: when a debt is paid, the
        fetches of all connections of a client leave their gates.
        """
        gate = self.list_gate
        size = fetch.frame.size
        if gate is not None and size >= LIST_BYTES:
            wait = gate.wait_seconds(fetch.view.api_key, size, fetch.exchange.client, now)
            if wait > 0.0:
                self._passed = fetch
                return
        self._forward_passed(fetch, now)

    def _forward_passed(self, fetch: WaitingFetch, now: float) -> None:
        self._passed = None
        self._mode.change(READING)
        before = self._in_flight.count
        self._forward_read(fetch.frame, fetch.exchange, self._settings.reader, fetch.view, now)
        if self.list_gate is not None:
            self.list_gate.read(before, False)

    def _wait_for_names(self, produce: WaitingProduce, topic_ids: TopicIds, now: float) -> None:
        self._mode.change(NAMES_WAITING)
        self._unnamed = UnnamedTopics(self._settings.topic_names, self._budget(), produce, topic_ids, now)

    def _end_wait_for_names(self, wait: UnnamedTopics, now: float) -> None:
        """Continue with the request, or the part of it, that has waited; reject unknown topics."""
        self._unnamed = None
        produce, unknown = wait.produce, wait.topic_ids
        frame, view = produce.frame, produce.view
        if view.partial:
            reject_part(frame.size, unknown)
        if produce.begun:
            self._mode.change(CUTTING_THROUGH)
            self._charge_part(frame, view, now)
            return
        self._mode.change(READING)
        self._take_named(frame, produce.exchange, produce.reader, view, unknown, now)
        if frame.complete:
            self.end_buffered()

    def _wait_for_debt(self, produce: WaitingProduce, verdict: Verdict, now: float) -> None:
        self._mode.change(PRODUCE_WAITING)
        self._debt_wait = DebtWait(produce, verdict, self._in_flight, now)

    def _end_wait_for_debt(self, produce: WaitingProduce, now: float) -> None:
        """Forward the request that has waited, or the rest of it."""
        self._debt_wait = None
        if produce.begun:
            self._mode.change(CUTTING_THROUGH)
            self._forward_part(produce.frame.complete, now)
            return
        self._mode.change(READING)
        self._forward_read(produce.frame, produce.exchange, produce.reader, produce.view, now)
        if produce.frame.complete:
            self.end_buffered()

    def give_back(self, exchange: Exchange, request: RequestView, now: float) -> None:
        """Take back the charges by topic of a Produce request that the broker has not executed."""
        self._charges.give_back_items(exchange, request, now)

    def end(self) -> None:
        """Take back and count what is due for requests that have not been forwarded or answered, because the
        connection is over.
        """
        passed = self._passed
        if passed is not None and passed.grant is not None and passed.grant.granted:
            passed.grant.cancel()  # it brings no records
        if self._fetch_gate is not None:
            self._fetch_gate.end()
        if self._debt_wait is not None:
            self._debt_wait.drop(self._engine)
        if self._large is not None:
            self._large.end()
        abandon_records(self._traffic, self._in_flight.first)
