"""Requests: the direction from the client to the broker."""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.verdict import Verdict
from proxy.relay.close_reasons import PRODUCE_REJECTED, SLOW_REQUEST, RelayError
from proxy.relay.cut_through import CutThrough
from proxy.relay.cut_through_usage import CutThroughUsage
from proxy.relay.exchange import Client, Exchange, local_exchange, new_client
from proxy.relay.fetch.gate import FetchGate
from proxy.relay.fetch.sessions import SESSION_MASK
from proxy.relay.frame_buffer import MAX_BUFFERED_FRAME_BYTES, FrameBuffer
from proxy.relay.inflight import PAID_SECONDS, InFlight
from proxy.relay.intercepted import Intercepted, max_request_bytes
from proxy.relay.large_frames import LargeFrame, LargeFrames
from proxy.relay.login.authentication import Authentication
from proxy.relay.modes import (
    BUFFERING,
    CLOSING,
    CUTTING_THROUGH,
    FETCH_WAITING,
    MEMORY_WAITING,
    PRODUCE_WAITING,
    READING,
    REQUEST_TRANSITIONS,
    change,
)
from proxy.relay.output import RelayOutput
from proxy.relay.produce_gate import ProduceGate
from proxy.relay.produced_records import ProducedRecords
from proxy.relay.traffic import Traffic
from proxy.relay.unsupported_version import reject_version
from proxy.relay.waiting_produce import WaitingProduce
from proxy.wire.api_keys import FETCH, METADATA, PRODUCE, SHARE_FETCH
from proxy.wire.apis import Api, RequestHeader, read_request_header
from proxy.wire.cursor import HEAD, Cursor
from proxy.wire.edit import LENGTH_SIZE, apply, with_length
from proxy.wire.errors import Malformed, Short
from proxy.wire.frames import CUT_THROUGH_BYTES, Frame, FrameSplitter, start_reading
from proxy.wire.protected_topics import ProtectedTopics
from proxy.wire.reader import NOTHING, Reader
from proxy.wire.registry import WITHOUT_INTERCEPTED, ApiTable
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import RequestView

DONE_AT_ONCE: Final = 32
"""Requests that are read without a pause although no response to them is due: the proxy has answered them, or
they want none. MAX_IN_FLIGHT does not bound these, and one read from the socket may have thousands.
"""
PAUSE_SECONDS: Final = 0.001
"""The client is muted for this long after DONE_AT_ONCE such requests, and others have their turn. A producer
with acks=0 may still send 32,000 requests a second.
"""

UNSUPPORTED_WEIGHT: Final = 8
"""A request of an unsupported version counts as so many: a client sends one, and then an older version."""

LARGE_FRAME_SECONDS: Final = 30.0
"""A request for whose memory others wait has to arrive within this time. Clients by default wait no longer
for a response (request.timeout.ms), and their time begins with the sending.
"""

PROTECTED: Final = "a large Produce request writes to a topic of the proxy"


@final
class Requests:
    """Raises ProtocolError, which is the client's fault."""

    def __init__(
        self,
        engine: QuotaEngine,
        traffic: Traffic,
        in_flight: InFlight,
        output: RelayOutput,
        client: Client,
        *,
        names: TopicNames,
        max_frame_bytes: int,
        intercepted_api_keys: frozenset[int],
        between_brokers: bool = False,
        node_id: int = -1,
        apis: ApiTable = WITHOUT_INTERCEPTED,
        authentication: Authentication | None = None,
        protected: ProtectedTopics | None = None,
        session_mask: int = SESSION_MASK,
        large_frames: LargeFrames | None = None,
    ) -> None:
        self._engine: Final = engine
        self._traffic: Final = traffic
        self._in_flight: Final = in_flight
        self._output: Final = output
        self._client = client
        self._names: Final = names
        self._intercepted_api_keys: Final = intercepted_api_keys
        self._between_brokers: Final = between_brokers
        self._apis: Final = apis.read_between_brokers if between_brokers else apis.read
        self._node_id: Final = node_id
        self._authentication: Final = authentication
        self._splitter: Final = FrameSplitter(max_frame_bytes)
        self._reader: Final = Reader(NOTHING)
        self._cursor: Final = Cursor()
        """Both read every request that is there as a whole, one after the other."""
        self._mode: native = READING
        self._cut: CutThrough | None = None
        """The request that is cut through, while the mode is CUTTING_THROUGH."""
        self._weight = 1
        """As how many of DONE_AT_ONCE the request counts that is being read."""
        self._buffer: Final = FrameBuffer()
        self._large: Final = LargeFrame(LargeFrames() if large_frames is None else large_frames)
        """The memory of the request that is buffered, if it has more than MAX_BUFFERED_FRAME_BYTES."""
        self._first_part: Frame | None = None
        """Of the request that waits for memory, while the mode is MEMORY_WAITING."""
        self._due_at = 0.0
        """When a request asks for memory again, or has to be whole."""
        self._usage: Final = CutThroughUsage(traffic, inbound=True)
        self._produced: Final = ProducedRecords(traffic)
        self._protected: Final = protected
        self._produce_gate: Final = ProduceGate(engine, in_flight, names, protected)
        self._fetch_gate: Final = FetchGate(engine, in_flight, names, between_brokers, session_mask)
        self._waiting: WaitingProduce | None = None
        """The request that waits, while the mode is PRODUCE_WAITING."""
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
            and mode != MEMORY_WAITING
        )
        return may or mode in (BUFFERING, CUTTING_THROUGH)

    @property
    def waiting(self) -> bool:
        """Whether a request has been read that is neither answered nor forwarded."""
        return self._mode in (FETCH_WAITING, PRODUCE_WAITING)

    @property
    def waits_for_debt(self) -> bool:
        """Whether a Produce request waits that is dropped if its client hangs up."""
        return self._waiting is not None and self._waiting.droppable

    @property
    def wake_at(self) -> float:
        """When wake() is due; 0.0 for never."""
        mode = self._mode
        waiting = self._waiting
        if waiting is not None:
            return waiting.wake_at
        if mode == FETCH_WAITING:
            return self._fetch_gate.wake_at
        return self._due_at if mode in (MEMORY_WAITING, BUFFERING) else 0.0

    @property
    def awaits_response(self) -> bool:
        """Whether a fetch waits for a response that is there now: wake() is due."""
        return self._mode == FETCH_WAITING and self._fetch_gate.awaits_response

    @property
    def follower(self) -> tuple[int, int] | None:
        """The node id of the follower that the client is, and how many messages it lacks."""
        return self._fetch_gate.follower

    @property
    def unfinished(self) -> bool:
        """Whether bytes of a request are there that have not been forwarded."""
        return self._splitter.buffered > 0 or self._splitter.in_frame

    def _change(self, mode: int) -> None:
        self._mode = change(REQUEST_TRANSITIONS, self._mode, mode)

    def ask(self, exchange: Exchange, frame: bytes, now: float) -> None:
        """Send the broker a request of the proxy's own, for an intercepted one."""
        exchange.sent_at = now
        self._output.send_to_broker([frame])
        self._in_flight.ask(exchange)

    def forward_intercepted(self, exchange: Exchange, frame: bytes, now: float) -> None:
        """Forward an intercepted request after all."""
        exchange.sent_at = now
        self._in_flight.forward(exchange)
        self._output.send_to_broker([frame])

    def feed(self, data: bytes) -> None:
        """Take bytes from the client."""
        self._traffic.total.bytes_in += len(data)
        self._splitter.feed(data)

    def read(self, now: float) -> None:
        """Read what the client has sent, as far as it may be read."""
        if self._mode == CLOSING and self.may_read:
            raise RelayError(PRODUCE_REJECTED, self._produce_gate.closing)
        if self._mode == MEMORY_WAITING and now >= self._due_at:
            self._ask_for_memory_again(now)
        in_flight = self._in_flight
        done = 0
        while self.may_read:
            frame = self._splitter.next()
            if frame is None:
                return
            due = in_flight.count
            if self._mode == CUTTING_THROUGH:
                self._cut_through(frame, now)
            elif self._mode == BUFFERING:
                self._read_buffered(frame, now)
            elif not frame.complete and self._is_buffered(frame):
                self._begin_buffering(frame, now)
            else:
                self._read_request(frame, now)
            if frame.complete and in_flight.count <= due:
                done += self._weight
                self._weight = 1
                if done >= DONE_AT_ONCE:
                    in_flight.mute(now + PAUSE_SECONDS)

    def _is_buffered(self, part: Frame) -> bool:
        """Whether a large request is read only when it is whole: one that the proxy answers, or out of which
        a quota may take partitions.
        """
        authentication = self._authentication
        if authentication is not None and authentication.raw:
            return False
        large = part.size > MAX_BUFFERED_FRAME_BYTES
        api_key = Reader(part.pieces, LENGTH_SIZE).i16()
        if api_key == PRODUCE:
            # Nobody holds shared memory before the login; a broker takes no such request then.
            return self._engine.rejects and not (
                large and authentication is not None and not authentication.done
            )
        if large:
            return False
        if api_key == FETCH:
            return self._fetch_gate.reads or self._engine.limits_fetches
        if api_key == SHARE_FETCH:
            return self._engine.limits_fetches
        limited = self._engine.intercepts_limited(api_key)
        return (limited or self._is_intercepted(api_key)) and part.size <= max_request_bytes(api_key)

    def _begin_buffering(self, part: Frame, now: float) -> None:
        self._due_at = 0.0
        if part.size > MAX_BUFFERED_FRAME_BYTES:
            if not self._large.reserve(part.size):
                self._change(MEMORY_WAITING)
                self._first_part = part
                self._due_at = now + self._large.retry_seconds
                return
            self._due_at = now + LARGE_FRAME_SECONDS
        self._change(BUFFERING)
        self._buffer.add(part)

    def _ask_for_memory_again(self, now: float) -> None:
        """Go on with the request that waits for memory; quotas may have ceased to reject meanwhile."""
        part = self._first_part
        assert part is not None, "set in this mode"
        self._first_part = None
        self._change(READING)
        if self._is_buffered(part):
            self._begin_buffering(part, now)
        else:
            self._large.leave()
            self._read_request(part, now)

    def _read_buffered(self, part: Frame, now: float) -> None:
        frame = self._buffer.add(part)
        if frame is None:
            return
        self._change(READING)
        self._read_request(frame, now)
        # One that waits for a debt keeps its memory.
        if part.size > MAX_BUFFERED_FRAME_BYTES and self._waiting is None:
            self._forwarded_large()

    def _forwarded_large(self) -> None:
        """Give memory back as soon as the broker has taken a large request."""
        self._output.holds_memory = True
        if not self._output.to_broker:
            self.give_memory_back()

    def give_memory_back(self) -> None:
        """No bytes for the broker wait to be sent: keep none of them."""
        if self._output.holds_memory:
            self._output.holds_memory = False
            self._output.to_broker = NOTHING
            self._large.give_back()

    def _read_request(self, frame: Frame, now: float) -> None:
        if self._authentication is not None and self._authentication.takes_bare(frame, self._client):
            self._output.send_to_broker(frame.pieces)
            return
        self._dispatch(frame, start_reading(frame, self._reader), now)
        self._reader.stop()

    def _dispatch(self, frame: Frame, reader: Reader, now: float) -> None:
        header = read_request_header(reader)
        self.first_request_seen = True
        self._traffic.count_request(header.api_key)
        client = self._client
        if client.raw_client_id != header.raw_client_id:
            client = self._change_client(header.raw_client_id)
        client.traffic.bytes_in += frame.size
        if client.usage is not None:
            client.usage.count_request(header.api_key, frame.size)
        api = self._api(header)
        if api is not None:
            if header.api_version < api.oldest or header.api_version > api.newest:
                response = reject_version(frame, header, api)
                self._weight = UNSUPPORTED_WEIGHT
                self._in_flight.add(local_exchange(header.correlation_id, client, header.api_key, response))
            elif header.api_key == METADATA and self._is_limited(METADATA, client, now):
                self._intercept(frame, header, client, api)
            else:
                self._read_body(frame, reader, header, client, api, now)
        elif self._authentication is not None and self._authentication.takes(frame, header, reader, client):
            self._output.send_to_broker(frame.pieces)
        elif self._is_intercepted(header.api_key):
            self._intercept(frame, header, client)
        else:
            request = self._unread(frame, header, client)
            exchange = Exchange(header.correlation_id, client, api_key=header.api_key, request=request)
            self._in_flight.add(exchange)
            self._forward(frame, exchange, reader, None, now)

    def _is_intercepted(self, api_key: int) -> bool:
        """Whether the proxy answers requests of this API; never before the client has logged in."""
        if self._authentication is not None and not self._authentication.done:
            return False
        return api_key in self._intercepted_api_keys or self._engine.intercepts(api_key)

    def _is_limited(self, api_key: int, client: Client, now: float) -> bool:
        """Whether the proxy intercepts this API for the sake of a quota of this client."""
        if self._authentication is not None and not self._authentication.done:
            return False
        return self._engine.intercepts_limited(api_key) and self._engine.intercepts_from(api_key, client, now)

    def _intercept(self, frame: Frame, header: RequestHeader, client: Client, api: Api | None = None) -> None:
        """Hand a request out. With an `api`, it may be forwarded after all."""
        most = max_request_bytes(header.api_key)
        if not frame.complete or frame.size > most:
            raise Malformed(
                f"a request of API {header.api_key} has {frame.size} bytes; "
                f"the proxy answers it itself and takes {most} at most"
            )
        request = self._unread(frame, header, client) if api is None else _view(frame, header, client, api)
        exchange = Exchange(
            header.correlation_id, client, api_key=header.api_key, api=api, request=request, local=True
        )
        self._output.intercept(Intercepted(exchange, header, _payload(frame)))
        self._in_flight.add(exchange)

    def _api(self, header: RequestHeader) -> Api | None:
        """How to read a request; None if the proxy does not read it."""
        if header.api_key >= len(self._apis):
            return None
        api = self._apis[header.api_key]
        if api is None or not self._between_brokers or api.oldest <= header.api_version <= api.newest:
            return api
        self._traffic.unread_fetches += 1
        return None

    def _unread(self, frame: Frame, header: RequestHeader, client: Client) -> RequestView | None:
        """What the quotas see of a request whose body is not read; None if no quota asks for it."""
        if not self._engine.covers(header.api_key):
            return None
        size = frame.size - LENGTH_SIZE
        client_id = client.client_id
        return RequestView(
            header.api_key, header.api_version, header.correlation_id, client_id, size, cursor=self._cursor
        )

    def _change_client(self, raw_client_id: bytes) -> Client:
        return self._become(new_client(self._client, raw_client_id, self._traffic, self._node_id))

    def _become(self, client: Client) -> Client:
        self._traffic.release(self._client.traffic)
        self._client = client
        return client

    def rename(self, principal: str) -> None:
        """The client has logged in as this user."""
        if self._client.principal != principal:
            who = Identity(principal, "", self._client.address)
            self._become(new_client(who, self._client.raw_client_id, self._traffic, self._node_id))

    def _read_body(
        self, frame: Frame, reader: Reader, header: RequestHeader, client: Client, api: Api, now: float
    ) -> None:
        version = header.api_version
        view = RequestView(
            header.api_key,
            version,
            header.correlation_id,
            client.client_id,
            frame.size - LENGTH_SIZE,
            version >= api.flexible_from,
            self._traffic.want_items or self._engine.wants_items(header.api_key),
            self._next_cursor(frame),
        )
        view.partial = not frame.complete
        if view.flexible:
            reader.skip_tags()
        rejectable = False
        body_at = 0
        if header.api_key == PRODUCE:
            rejectable = view.want_heads = self._engine.rejects
            view.protected_topics = self._protected
            body_at = reader.offset
        try:
            api.read_request(reader, view)
        except Short:
            if frame.complete or view.cursor.phase == HEAD:
                raise
        if header.api_key == PRODUCE:
            self.sends_unanswered = view.acks == 0
        if view.names_protected:
            view = self._with_items(frame, api, view, body_at)
            rejectable = True
        if view.client_software:
            self._produce_gate.client_is(view.client_software)
        exchange = Exchange(header.correlation_id, client, api_key=header.api_key, api=api, request=view)
        if rejectable and frame.complete and self._reject(frame, exchange, view, body_at, now):
            return
        verdict = self._admit(exchange, view, now)
        if verdict.ahead_seconds > 0.0:
            self._wait(WaitingProduce(frame, exchange, reader, view, verdict, now))
            return
        fetches = header.api_key == FETCH or header.api_key == SHARE_FETCH
        if fetches and self._is_stopped(frame, exchange, view, now):
            return
        self._forward_read(frame, exchange, reader, view, now)

    def _next_cursor(self, frame: Frame) -> Cursor:
        """The cursor for a request: a new one if it is cut through, and outlives this call."""
        if not frame.complete:
            return Cursor()
        self._cursor.start()
        return self._cursor

    def _with_items(self, frame: Frame, api: Api, view: RequestView, body_at: int) -> RequestView:
        """Return the view of a Produce request to a protected topic, read again with its items.

        Raises RelayError if the request is cut through: it cannot be answered in part, and a broker does
        nothing about a request whose end does not come.
        """
        if view.partial:
            raise RelayError(PRODUCE_REJECTED, PROTECTED)
        if view.want_items:
            return view
        again = RequestView(
            view.api_key,
            view.api_version,
            view.correlation_id,
            view.client_id,
            view.size,
            view.flexible,
            True,
        )
        again.protected_topics = view.protected_topics
        again.want_heads = view.want_heads
        api.read_request(Reader(frame.pieces, body_at), again)
        return again

    def _reject(self, frame: Frame, exchange: Exchange, view: RequestView, body_at: int, now: float) -> bool:
        """Take the partitions out that quotas reject; returns whether none is left to be forwarded."""
        none_left = self._produce_gate.reject(frame, exchange, view, body_at, now)
        if self._produce_gate.closing:
            self._change(CLOSING)
        return none_left

    def _is_stopped(self, frame: Frame, exchange: Exchange, view: RequestView, now: float) -> bool:
        """Whether a fetch is not forwarded: it waits for its quotas, or has been answered."""
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
        if view.acks != 0:
            self._in_flight.add(exchange)
        self._forward(frame, exchange, reader, view, now)

    def wake(self, now: float) -> None:
        """Ask the quotas again for the request that waits. read() asks again for memory.

        Raises RelayError if a large request has not arrived in time.
        """
        waiting = self._waiting
        if waiting is not None:
            until = self._engine.review(waiting.debt, now)
            if until > now + PAID_SECONDS:
                waiting.look(until, now)
            else:
                self._end_wait(waiting, now)
            return
        if self._mode == BUFFERING:
            self._check_pace(now)
        if self._mode != FETCH_WAITING:
            return
        fetch = self._fetch_gate.wake(now)
        if not self._fetch_gate.waiting:
            self._change(READING)
        if fetch is not None:
            self._forward_read(fetch.frame, fetch.exchange, self._reader, fetch.view, now)

    def _check_pace(self, now: float) -> None:
        if self._large.wanted:
            raise RelayError(
                SLOW_REQUEST,
                f"a request of {self._large.size} bytes has not arrived within {LARGE_FRAME_SECONDS:g} s, "
                "and other large requests wait for its memory",
            )
        self._due_at = now + 1.0

    def give_up_waiting(self, now: float) -> None:
        """Answer or forward the fetch that waits, if there is one."""
        if self._mode == FETCH_WAITING:
            fetch = self._fetch_gate.give_up(now)
            self._change(READING)
            if fetch is not None:
                self._forward_read(fetch.frame, fetch.exchange, self._reader, fetch.view, now)

    def _admit(self, exchange: Exchange, view: RequestView, now: float) -> Verdict:
        self._names.fill(view.items)
        verdict = self._engine.admit(view, exchange.client, now)
        if verdict.throttle_seconds > 0.0:
            exchange.throttled_until = max(exchange.throttled_until, now + verdict.throttle_seconds)
            self._in_flight.throttle(verdict, exchange.client, now)
        return verdict

    def _wait(self, waiting: WaitingProduce) -> None:
        self._change(PRODUCE_WAITING)
        self._waiting = waiting

    def _end_wait(self, waiting: WaitingProduce, now: float) -> None:
        """Forward the request that has waited, or the rest of it."""
        self._waiting = None
        cut = waiting.cut
        if cut is not None:
            self._change(CUTTING_THROUGH)
            self._forward_part(cut, waiting.frame.complete, now)
        else:
            self._change(READING)
            self._forward_read(waiting.frame, waiting.exchange, waiting.reader, waiting.view, now)
            if self._large.size > 0:
                self._forwarded_large()

    def _forward(
        self, frame: Frame, exchange: Exchange, reader: Reader, view: RequestView | None, now: float
    ) -> None:
        if not frame.complete:
            self._start_cut_through(CutThrough(frame, exchange, reader, view))
            return
        exchange.sent_at = now
        if view is None or not view.edited:
            self._output.send_to_broker(frame.pieces)
        else:
            edits = with_length(view.edits, frame.size - LENGTH_SIZE)
            self._output.send_to_broker(apply(frame.pieces, edits))
        if exchange.api_key == PRODUCE and view is not None and self._traffic.want_items:
            self._produced.send(exchange.client, view)

    def _start_cut_through(self, cut: CutThrough) -> None:
        self._change(CUTTING_THROUGH)
        self._cut = cut
        self._output.send_to_broker(cut.take())
        if cut.view is not None:
            self._usage.begin(cut)
            self._usage.count_items(cut, cut.view)

    def _cut_through(self, part: Frame, now: float) -> None:
        """Read the next part of a request that is cut through, and forward what may leave."""
        cut = self._cut
        assert cut is not None, "set in this mode"
        cut.feed(part.pieces)
        view = cut.exchange.request
        api = cut.exchange.api
        if view is not None and api is not None and not view.cursor.done:
            try:
                api.read_request(cut.reader, view)
            except Short:
                if part.complete:
                    raise
            if view.names_protected:
                raise RelayError(PRODUCE_REJECTED, PROTECTED)
        if view is not None and view.items:
            exchange = cut.exchange
            verdict = self._charge_items(exchange, view, now)
            self._usage.count_items(cut, view)
            if verdict.ahead_seconds > 0.0:
                self._wait(WaitingProduce(part, exchange, cut.reader, view, verdict, now, cut))
                return
        self._forward_part(cut, part.complete, now)

    def _forward_part(self, cut: CutThrough, complete: bool, now: float) -> None:
        """Forward what may leave of a request that is cut through; `complete`: its last part is there."""
        self._output.send_to_broker(cut.take())
        if cut.view is not None and cut.waiting > CUT_THROUGH_BYTES:
            raise Malformed(f"a field of the request is longer than {CUT_THROUGH_BYTES} bytes")
        if complete:
            cut.exchange.sent_at = now
            self._usage.end(cut)
            self._cut = None
            self._change(READING)

    def _charge_items(self, exchange: Exchange, view: RequestView, now: float) -> Verdict:
        """Charge items of a large request that have come after it was admitted."""
        self._names.fill(view.items)
        until = exchange.throttled_until
        verdict = self._engine.charge_items(view, view.items, exchange.client, now, until)
        if verdict.throttle_seconds > 0.0:
            exchange.throttled_until = max(until, now + verdict.throttle_seconds)
            self._in_flight.throttle(verdict, exchange.client, now)
        return verdict

    def end(self) -> None:
        """The connection is over."""
        self._fetch_gate.end()
        waiting = self._waiting
        if waiting is not None and waiting.cut is None:
            view = waiting.view
            self._engine.give_back(view, view.items, waiting.exchange.client, waiting.looked_at)
        self._large.leave()
        self._large.give_back()
        self._traffic.release(self._client.traffic)
        if self._cut is not None:
            self._usage.end(self._cut)
        self._produced.abandon(self._in_flight.first)


def _payload(frame: Frame) -> bytes:
    """Header and body of a frame, copied once: it may have megabytes."""
    first, rest = frame.pieces[0], frame.pieces[1:]
    if len(first) < LENGTH_SIZE:
        return b"".join(frame.pieces)[LENGTH_SIZE:]
    return b"".join([first[LENGTH_SIZE:], *rest])


def _view(frame: Frame, header: RequestHeader, client: Client, api: Api) -> RequestView:
    """Return the view of a request whose header alone is read."""
    version = header.api_version
    return RequestView(
        header.api_key,
        version,
        header.correlation_id,
        client.client_id,
        frame.size - LENGTH_SIZE,
        version >= api.flexible_from,
    )
