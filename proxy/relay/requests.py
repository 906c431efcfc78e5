"""Requests: the direction from the client to the broker."""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.engine import QuotaEngine
from proxy.quota.verdict import Verdict
from proxy.relay.close_reasons import RelayError
from proxy.relay.cut_through import CutThrough
from proxy.relay.debt_wait import DebtWait
from proxy.relay.exchange import Client, Exchange, local_exchange
from proxy.relay.fetch.gate import FetchGate
from proxy.relay.fetch.sessions import SESSION_MASK
from proxy.relay.frame_buffer import MAX_BUFFERED_FRAME_BYTES
from proxy.relay.id_budget import IdBudget
from proxy.relay.inflight import InFlight
from proxy.relay.interception import Interception
from proxy.relay.login.authentication import Authentication
from proxy.relay.modes import (
    BUFFERING,
    CLOSING,
    CUTTING_THROUGH,
    FETCH_WAITING,
    MEMORY_WAITING,
    NAMES_WAITING,
    PRODUCE_WAITING,
    READING,
    REQUEST_TRANSITIONS,
    change,
)
from proxy.relay.output import RelayOutput
from proxy.relay.produce_gate import FULL_READ_BYTES, ProduceGate
from proxy.relay.request_buffer import RequestBuffer
from proxy.relay.request_charges import RequestCharges
from proxy.relay.request_cut_through import RequestCutThrough
from proxy.relay.request_forwarder import RequestForwarder
from proxy.relay.request_parser import RequestParser, check_list, unread_body
from proxy.relay.sender import Sender
from proxy.relay.settings import RelaySettings
from proxy.relay.traffic import Traffic
from proxy.relay.unnamed_topics import NO_TOPICS, TopicIds, UnnamedTopics, reject_part
from proxy.relay.unsupported_version import reject_version
from proxy.relay.waiting_produce import WaitingProduce
from proxy.wire.api_keys import FETCH, METADATA, PRODUCE, SHARE_FETCH
from proxy.wire.apis import Api, RequestHeader, read_request_header
from proxy.wire.frames import Frame, FrameSplitter, start_reading
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView

DONE_AT_ONCE: Final = 32
"""Requests that the relay reads without a pause although no response of the broker is due: the proxy has
answered them, or they have no response. MAX_IN_FLIGHT does not limit these, and one read from the socket may
have thousands.
"""
PAUSE_SECONDS: Final = 0.001
"""After DONE_AT_ONCE such requests, the relay mutes the client for this long, and other connections have
their turn. A producer with acks=0 may still send 32,000 requests a second.
"""

UNSUPPORTED_WEIGHT: Final = 8
"""A request of an unsupported version counts as this many: a client sends one, and then an older version."""


@final
class Requests:
    """Raises ProtocolError for faults of the client."""

    def __init__(
        self,
        engine: QuotaEngine,
        traffic: Traffic,
        in_flight: InFlight,
        output: RelayOutput,
        client: Client,
        settings: RelaySettings,
        names: IdBudget,
        *,
        node_id: int = -1,
        session_mask: int = SESSION_MASK,
        authentication: Authentication | None = None,
    ) -> None:
        protected = settings.protected
        between_brokers = settings.between_brokers
        self._engine: Final = engine
        self._traffic: Final = traffic
        self._in_flight: Final = in_flight
        self._output: Final = output
        self.sender: Final = Sender(client, traffic, node_id)
        self._charges: Final = RequestCharges(engine, in_flight, names)
        self._authentication: Final = authentication
        self.interception: Final = Interception(
            engine, in_flight, output, authentication, settings.intercepted_api_keys
        )
        self._splitter: Final = FrameSplitter(settings.max_frame_bytes)
        self._max_list_bytes: Final[native] = settings.max_list_bytes
        self._parser: Final = RequestParser(engine, traffic, settings.apis, protected, between_brokers)
        self._reader: Final = self._parser.reader
        self._mode: native = READING
        self._weight = 1
        """The number by which the request that is being read counts towards DONE_AT_ONCE."""
        self._forwarder: Final = RequestForwarder(output, traffic)
        self._cut_through: Final = RequestCutThrough(output, traffic, self._parser, self._charges)
        """In the mode CUTTING_THROUGH, it has the request that is forwarded while it arrives."""
        self._produce_gate: Final = ProduceGate(engine, in_flight, names, protected)
        self._fetch_gate: Final = FetchGate(engine, in_flight, names, between_brokers, session_mask)
        self.buffer: Final = RequestBuffer(
            engine,
            output,
            authentication,
            self.interception,
            self._fetch_gate,
            settings.large_frames,
        )
        """In the modes BUFFERING and MEMORY_WAITING, it has the request that is not complete."""
        self._debt_wait: DebtWait | None = None
        """In the mode PRODUCE_WAITING, the request that waits; else None."""
        self._unnamed: Final = UnnamedTopics(engine, settings.topic_names, names)
        """In the mode NAMES_WAITING, it has the request that waits."""
        self._more_waits = False
        """Whether the client has probably sent more bytes than have been read."""
        self.first_request_seen = False
        """Whether a request has been read."""
        self.sends_unanswered = False
        """Whether the last Produce request had acks=0."""

    @property
    def may_read(self) -> bool:
        """Whether the next frame may be read. The rest of a frame may be read at any time."""
        mode = self._mode
        in_flight = self._in_flight
        may = (
            in_flight.muted_until == 0.0
            and not in_flight.awaiting_response
            and not in_flight.full
            and mode != FETCH_WAITING
            and mode != PRODUCE_WAITING
            and mode != NAMES_WAITING
            and mode != MEMORY_WAITING
        )
        return may or mode in (BUFFERING, CUTTING_THROUGH)

    @property
    def waiting(self) -> bool:
        """Whether a request has been read and is neither answered nor forwarded."""
        return self._mode in (FETCH_WAITING, PRODUCE_WAITING, NAMES_WAITING)

    @property
    def waits_for_quotas(self) -> bool:
        """Whether a request has been read and waits for its quotas."""
        return self._mode in (FETCH_WAITING, PRODUCE_WAITING)

    @property
    def waits_for_debt(self) -> bool:
        """Whether Produce requests wait, here or unread, that are dropped if their client closes the
        connection.
        """
        wait = self._debt_wait
        if wait is not None:
            return wait.droppable
        return self._mode != CLOSING and self._produce_gate.mutes

    @property
    def wake_at(self) -> float:
        """When wake() is due; 0.0 for never."""
        mode = self._mode
        wait = self._debt_wait
        if wait is not None:
            return wait.wake_at
        if mode == FETCH_WAITING:
            return self._fetch_gate.wake_at
        if mode == NAMES_WAITING:
            return self._unnamed.wake_at
        return self.buffer.due_at if mode in (MEMORY_WAITING, BUFFERING) else 0.0

    @property
    def awaits_response(self) -> bool:
        """Whether a fetch that has waited for a response can continue, so that wake() is due."""
        return self._mode == FETCH_WAITING and self._fetch_gate.awaits_response

    @property
    def follower(self) -> tuple[int, int] | None:
        """The node id of the follower at the client's end, and the number of messages that it lacks."""
        return self._fetch_gate.follower

    @property
    def unfinished(self) -> bool:
        """Whether bytes of a request have arrived that have not been forwarded."""
        return self._splitter.buffered > 0 or self._splitter.in_frame

    def _change(self, mode: int) -> None:
        self._mode = change(REQUEST_TRANSITIONS, self._mode, mode)

    def feed(self, data: bytes) -> None:
        """Take bytes from the client."""
        self._traffic.total.bytes_in += len(data)
        self._more_waits = len(data) >= FULL_READ_BYTES
        self._splitter.feed(data)

    def read(self, now: float) -> None:
        """Read the requests that the client has sent, as far as they may be read."""
        if self._mode == CLOSING and self.may_read:
            raise RelayError(self._produce_gate.closing_reason, self._produce_gate.closing)
        if self._mode == MEMORY_WAITING and now >= self.buffer.due_at:
            self._ask_for_memory_again(now)
        in_flight = self._in_flight
        done = 0
        while self.may_read:
            frame = self._splitter.next()
            if frame is None:
                self._produce_gate.all_read(self._more_waits, now)
                return
            due = in_flight.count
            if self._mode == CUTTING_THROUGH:
                self._read_on(frame, now)
            elif self._mode == BUFFERING:
                self._read_buffered(frame, now)
            elif frame.size > self._max_list_bytes:
                check_list(frame, self._max_list_bytes)
                self._begin(frame, now)
            else:
                self._begin(frame, now)
            if frame.complete and in_flight.count <= due:
                done += self._weight
                self._weight = 1
                if done >= DONE_AT_ONCE:
                    in_flight.mute(now + PAUSE_SECONDS)

    def _begin(self, frame: Frame, now: float) -> None:
        """Read a request, or the first part of a large one."""
        if not frame.complete and self.buffer.takes(frame):
            self._begin_buffering(frame, now)
        else:
            self._read_request(frame, now)

    def _begin_buffering(self, part: Frame, now: float) -> None:
        self._change(BUFFERING if self.buffer.begin(part, self.sender.client, now) else MEMORY_WAITING)

    def _ask_for_memory_again(self, now: float) -> None:
        """Continue with the request that waits for memory; quotas may have stopped rejecting meanwhile."""
        part = self.buffer.take_waiting()
        self._change(READING)
        if self.buffer.takes(part):
            self._begin_buffering(part, now)
        else:
            self.buffer.leave_line()
            self._read_request(part, now)

    def _read_buffered(self, part: Frame, now: float) -> None:
        frame = self.buffer.add(part)
        if frame is None:
            return
        self._change(READING)
        self._read_request(frame, now)
        self._end_buffered(part)

    def _end_buffered(self, frame: Frame) -> None:
        """Note that a complete request has been forwarded, answered or dropped, unless it waits: its memory
        is needed until the broker has taken it. An earlier request may still need the connection's memory.
        """
        if frame.size > MAX_BUFFERED_FRAME_BYTES and self._mode not in (PRODUCE_WAITING, NAMES_WAITING):
            self.buffer.forwarded_large()

    def _read_request(self, frame: Frame, now: float) -> None:
        if self._authentication is not None and self._authentication.takes_bare(frame, self.sender.client):
            self._output.send_to_broker(frame.pieces)
            return
        self._dispatch(frame, start_reading(frame, self._reader), now)
        self._reader.stop()

    def _dispatch(self, frame: Frame, reader: Reader, now: float) -> None:
        header = read_request_header(reader)
        self.first_request_seen = True
        client = self.sender.count(header, frame.size)
        api = self._parser.api(header)
        if api is not None:
            if header.api_version < api.oldest or header.api_version > api.newest:
                response = reject_version(frame, header, api)
                self._weight = UNSUPPORTED_WEIGHT
                self._in_flight.add(local_exchange(header.correlation_id, client, header.api_key, response))
            elif header.api_key == METADATA and self.interception.covers_client(METADATA, client, now):
                whole = unread_body(frame, header, client, api)
                self.interception.hand_out(frame, header, client, api, whole)
            else:
                self._read_body(frame, reader, header, client, api, now)
        elif self._authentication is not None and self._authentication.takes(frame, header, reader, client):
            self._output.send_to_broker(frame.pieces)
        else:
            request = self._parser.unread(frame, header, client)
            if self.interception.covers(header.api_key):
                self.interception.hand_out(frame, header, client, None, request)
                return
            exchange = Exchange(header.correlation_id, client, api_key=header.api_key, request=request)
            self._in_flight.add(exchange)
            self._forward(frame, exchange, reader, None, now)

    def _read_body(
        self, frame: Frame, reader: Reader, header: RequestHeader, client: Client, api: Api, now: float
    ) -> None:
        view = self._parser.read(frame, reader, header, client, api)
        if header.api_key == PRODUCE:
            self.sends_unanswered = view.acks == 0
        if view.client_software:
            self._produce_gate.client_is(view.client_software)
        exchange = Exchange(header.correlation_id, client, api_key=header.api_key, api=api, request=view)
        rejectable = view.rejectable or view.names_protected
        if header.api_key == PRODUCE:
            unnamed = self._unnamed.find(view, client)
            if unnamed:
                body_at = self._parser.body_at
                produce = WaitingProduce(
                    frame, exchange, reader, view, body_at=body_at, rejectable=rejectable
                )
                self._wait_for_names(produce, unnamed, now)
                return
        if rejectable and frame.complete and self._reject(frame, exchange, view, self._parser.body_at, now):
            return
        self._charge_and_forward(frame, exchange, reader, view, now)

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
        none_left = self._produce_gate.reject(frame, exchange, view, body_at, now, unknown)
        if none_left:
            self._close_if_due(now)
        return none_left

    def _close_if_due(self, now: float) -> None:
        """End the connection soon if batches of a producer without responses have been dropped, and the rest
        of their request has been forwarded.
        """
        if self._produce_gate.closing and self._mode == READING:
            self._produce_gate.delay_close(now)
            self._change(CLOSING)

    def _is_stopped(self, frame: Frame, exchange: Exchange, view: RequestView, now: float) -> bool:
        """Return whether a fetch is not forwarded, because it waits for its quotas or has been answered."""
        gate = self._fetch_gate
        if not (self._engine.limits_fetches or gate.reads) or gate.forwards(frame, exchange, view, now):
            return False
        if gate.waiting:
            self._change(FETCH_WAITING)
        return True

    def _forward_read(
        self, frame: Frame, exchange: Exchange, reader: Reader, view: RequestView, now: float
    ) -> None:
        if view.api_key == FETCH:
            exchange.streams = not view.bounded and not view.want_items and view.fetch_rewrite is None
        if view.acks == 0:
            self._produce_gate.await_silently(frame, exchange, view, self._parser.body_at)
        if view.acks != 0:
            self._in_flight.add(exchange)
        self._forward(frame, exchange, reader, view, now)
        self._close_if_due(now)

    def wake(self, now: float) -> None:
        """Ask the quotas again about the request that waits; read() asks again for memory. Raises RelayError
        if a large request has not arrived in time, or names an unknown topic.
        """
        if self._mode == NAMES_WAITING:
            if self._unnamed.look(now):
                self._end_wait_for_names(now)
            return
        wait = self._debt_wait
        if wait is not None:
            if wait.review(self._engine, now):
                self._end_wait_for_debt(wait.produce, now)
            return
        if self._mode == BUFFERING:
            self.buffer.check_pace(now)
        if self._mode != FETCH_WAITING:
            return
        fetch = self._fetch_gate.wake(now)
        if not self._fetch_gate.waiting:
            self._change(READING)
        if fetch is not None:
            self._forward_read(fetch.frame, fetch.exchange, self._reader, fetch.view, now)

    def give_up_waiting(self, now: float) -> None:
        """Answer or forward the fetch that waits, if there is one."""
        if self._mode == FETCH_WAITING:
            fetch = self._fetch_gate.give_up(now)
            self._change(READING)
            if fetch is not None:
                self._forward_read(fetch.frame, fetch.exchange, self._reader, fetch.view, now)

    def _wait_for_names(self, produce: WaitingProduce, topic_ids: TopicIds, now: float) -> None:
        self._change(NAMES_WAITING)
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
            self._change(CUTTING_THROUGH)
            self._charge_part(frame, view, now)
            return
        self._change(READING)
        rejectable = frame.complete and (produce.rejectable or len(unknown) > 0)
        if not (rejectable and self._reject(frame, exchange, view, produce.body_at, now, unknown)):
            self._charge_and_forward(frame, exchange, produce.reader, view, now)
        if frame.complete:
            self._end_buffered(frame)

    def _wait_for_debt(self, produce: WaitingProduce, verdict: Verdict, now: float) -> None:
        self._change(PRODUCE_WAITING)
        self._debt_wait = DebtWait(produce, verdict, now)

    def _end_wait_for_debt(self, produce: WaitingProduce, now: float) -> None:
        """Forward the request that has waited, or the rest of it."""
        self._debt_wait = None
        if produce.cut is not None:
            self._change(CUTTING_THROUGH)
            self._forward_part(produce.frame.complete, now)
            return
        self._change(READING)
        self._forward_read(produce.frame, produce.exchange, produce.reader, produce.view, now)
        if produce.frame.complete:
            self._end_buffered(produce.frame)

    def _forward(
        self, frame: Frame, exchange: Exchange, reader: Reader, view: RequestView | None, now: float
    ) -> None:
        if not frame.complete:
            self._change(CUTTING_THROUGH)
            self._cut_through.begin(CutThrough(frame, exchange, reader, view), now)
            return
        self._forwarder.forward(frame, exchange, view, now)

    def _read_on(self, part: Frame, now: float) -> None:
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
            self._change(READING)

    def end(self) -> None:
        """The connection is over."""
        self._fetch_gate.end()
        if self._debt_wait is not None:
            self._debt_wait.drop(self._engine)
        self.buffer.end()
        self.sender.end()
        self._cut_through.end()
        self._forwarder.end(self._in_flight.first)
