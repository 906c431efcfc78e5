"""Requests: the direction from the client to the broker."""

from collections.abc import Callable
from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.engine import QuotaEngine
from proxy.relay.budgets.read_turns import FREE_FRAMES, LARGE_BYTES, PARTITIONS_SHIFT, PAUSE_SECONDS
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Client, Exchange, local_exchange
from proxy.relay.fetch.sessions import SESSION_MASK
from proxy.relay.inflight import InFlight
from proxy.relay.login.authentication import Authentication, check_before_login
from proxy.relay.modes import (
    BUFFERING,
    CLOSING,
    CUTTING_THROUGH,
    FETCH_WAITING,
    FIRST_WAITING,
    MEMORY_WAITING,
    READING,
    REQUEST_MODES,
    Mode,
)
from proxy.relay.output import RelayOutput
from proxy.relay.requests.admission import RequestAdmission
from proxy.relay.requests.buffer import RequestBuffer
from proxy.relay.requests.first_wait import FirstWait
from proxy.relay.requests.group_gate import GroupGate
from proxy.relay.requests.interception import Interception, covers, covers_client
from proxy.relay.requests.list_gate import ListGate
from proxy.relay.requests.parser import RequestParser, api_key_of, check_list, unread_body
from proxy.relay.requests.produce_gate import FULL_READ_BYTES
from proxy.relay.requests.request_checks import check_request
from proxy.relay.requests.sender import Sender
from proxy.relay.requests.streams import FIRST_PART_BYTES, LATER_PART_BYTES, STREAM_BYTES, may_stream
from proxy.relay.requests.unsupported_version import reject_version
from proxy.relay.settings import RelaySettings
from proxy.wire.api_keys import FETCH, METADATA, NO_LISTS, PRODUCE
from proxy.wire.apis.api import Api, RequestHeader, read_request_header
from proxy.wire.errors import Malformed
from proxy.wire.frames import Frame, FrameSplitter, start_reading
from proxy.wire.group_member import MEMBER_REQUESTS
from proxy.wire.keyed.keyed_arrays import UNCHECKED
from proxy.wire.reader import Reader
from proxy.wire.spare_items import SpareItems

DONE_AT_ONCE: Final = 32
"""Requests that the relay reads without a pause although no response of the broker is due: the proxy has
answered them, or they have no response. MAX_IN_FLIGHT does not limit these, and one read from the socket may
have thousands. After so many, the relay mutes the client for PAUSE_SECONDS, and other connections have their
turn. A producer with acks=0 may still send 32,000 requests a second.
"""
FREE_AT_MOST: Final = 10
"""Requests of unknown versions before the login, which no quota counts: a client sends one."""
UNSUPPORTED_WEIGHT: Final = 8
"""A request of an unsupported version counts as this many: a client sends one, and then an older version."""


@final
class Requests:
    """The requests of one connection. Raises ProtocolError for faults of the client."""

    def __init__(
        self,
        *,
        engine: QuotaEngine,
        traffic: Traffic,
        in_flight: InFlight,
        output: RelayOutput,
        client: Client,
        settings: RelaySettings,
        spare_items: SpareItems,
        node_id: int = -1,
        session_mask: int = SESSION_MASK,
        authentication: Authentication | None = None,
    ) -> None:
        self._engine: Final = engine
        self._settings: Final = settings
        self._traffic: Final = traffic
        self._in_flight: Final = in_flight
        self._output: Final = output
        self.sender: Final = Sender(client, traffic, node_id)
        self._authentication: Final = authentication
        self._splitter: Final = FrameSplitter(settings.max_frame_bytes)
        self._list_gate: ListGate | None = None
        """None before the first list."""
        self._node_id: Final = node_id
        self._group_gate: GroupGate | None = None
        """None before the first request of a member of a group."""
        self._parser: Final = RequestParser(engine, traffic, settings, spare_items)
        self._reader: Final = settings.reader
        self._mode: Final = Mode(REQUEST_MODES)
        self._weight = 1
        """The number by which the request that is being read counts towards DONE_AT_ONCE."""
        self._more: native = 0
        """By how much more it counts towards the requests of a turn, because it has many partitions."""
        self.admission: Final = RequestAdmission(
            engine,
            traffic,
            in_flight,
            output,
            settings,
            mode=self._mode,
            parser=self._parser,
            session_mask=session_mask,
        )
        """In the other modes but READING and FIRST_WAITING, it has the request."""
        self._first_wait: FirstWait | None = None
        """In the mode FIRST_WAITING, it has the request; else None."""
        self._stream_from: native = 0
        """How many bytes of a Produce request must have come before it is forwarded while it arrives; 0 if
        none is.
        """
        self._tried_to_stream = False
        """Whether the request that has begun to arrive is not forwarded so."""
        self._more_waits = False
        """Whether the client has probably sent more bytes than have been read."""
        self._free = 0
        """How many requests of unknown versions the proxy has answered before the login."""
        self.first_request_seen = False
        """Whether a request has been read."""
        self.sends_unanswered = False
        """Whether the last Produce request had acks=0."""

    @property
    def interception(self) -> Interception:
        """The intercepted requests."""
        return Interception(self._in_flight, self._output, self._settings.service_clock)

    @property
    def buffer(self) -> RequestBuffer:
        """In the modes BUFFERING and MEMORY_WAITING, it has the request that is not complete. Created with
        the first large request.
        """
        buffer = self.admission.buffer
        if buffer is None:
            settings = self._settings
            buffer = self.admission.buffer = RequestBuffer(
                self._engine,
                self._output,
                self._authentication,
                settings.intercepted_api_keys,
                settings.large_frames,
            )
        return buffer

    @property
    def may_read(self) -> bool:
        """Whether the next frame may be read. The rest of a frame may be read at any time."""
        mode = self._mode.now
        if mode in (READING, CLOSING):
            in_flight = self._in_flight
            return in_flight.muted_until == 0.0 and not in_flight.awaiting_response and not in_flight.full
        return mode in (BUFFERING, CUTTING_THROUGH)

    @property
    def wake_at(self) -> float:
        """When wake() is due; 0.0 for never."""
        mode = self._mode.now
        if mode == READING:
            return 0.0
        if self._first_wait is not None:
            return self._first_wait.wake_at
        return self.buffer.due_at if mode in (MEMORY_WAITING, BUFFERING) else self.admission.wake_at

    @property
    def follower(self) -> tuple[int, int] | None:
        """The node id of the follower at the client's end, and the number of messages that it lacks."""
        return self.admission.follower

    @property
    def waits_for_turn(self) -> bool:
        """Whether a list has arrived and waits for its turn."""
        return self._list_gate is not None and self._list_gate.waiting

    @property
    def unfinished(self) -> bool:
        """Whether bytes of a request have arrived that have not been forwarded."""
        return self._splitter.buffered > 0 or self._splitter.in_frame

    def feed(self, data: bytes) -> None:
        """Take bytes from the client."""
        self._traffic.total.bytes_in += len(data)
        self._more_waits = len(data) >= FULL_READ_BYTES
        self._splitter.feed(data)

    def read(self, now: float) -> None:
        """Read the requests that the client has sent, as far as they may be read."""
        if self._mode.now == CLOSING and self.may_read:
            raise self.admission.closing_error
        if self._mode.now == MEMORY_WAITING and now >= self.buffer.due_at:
            self._ask_for_memory_again(now)
        in_flight = self._in_flight
        done = 0
        read: native = 0
        while self.may_read:
            if self._splitter.buffered >= LARGE_BYTES and self._must_wait(now):
                in_flight.mute(now + PAUSE_SECONDS)
                return
            frame = self._next(now)
            if frame is None:
                self.admission.all_read(self._more_waits, now)
                return
            due = in_flight.count
            self._take(frame, now)
            if frame.complete and in_flight.count <= due:
                done += self._weight
                self._weight = 1
                if done >= DONE_AT_ONCE:
                    in_flight.mute(now + PAUSE_SECONDS)
            read += 1 + self._more
            if read >= FREE_FRAMES and not self._settings.request_turns.take(1 + self._more, now):
                in_flight.mute(now + PAUSE_SECONDS)
            self._more = 0

    def _take(self, frame: Frame, now: float) -> None:
        """Take a request, or the next part of a large one."""
        mode = self._mode.now
        if mode == CUTTING_THROUGH:
            self.admission.read_on(frame, now)
            if frame.complete and self._stream_from > 0:
                self._stream_from = LATER_PART_BYTES
        elif mode == BUFFERING:
            self._read_buffered(frame, now)
        elif frame.size >= self._settings.list_from:
            self._begin_list(frame, now)
        else:
            self._begin(frame, now)

    def _next(self, now: float) -> Frame | None:
        """Return the next request, the next part of a large one, or None."""
        frame = self._splitter.next()
        if frame is None and self._stream_from > 0:
            return self._next_streamed(now)
        self._tried_to_stream = False
        return frame

    def _next_streamed(self, now: float) -> Frame | None:
        """Return the first part of a Produce request that is forwarded while it arrives, if it has come."""
        if self._tried_to_stream:
            return None
        part = self._splitter.first_part(STREAM_BYTES, self._stream_from)
        if part is None:
            return None
        self._tried_to_stream = True
        logged_in = self._authentication is None or self._authentication.done
        if logged_in and may_stream(part, self._engine, self._parser, self._settings, now):
            return part
        self._splitter.put_back(part)
        return None

    def stream(self) -> None:
        """See Relay.stream_requests()."""
        self._stream_from = FIRST_PART_BYTES

    @property
    def forwardable(self) -> int:
        """The number of following bytes that may go directly to the broker; see forwarded()."""
        missing = self._splitter.missing
        # The last byte is fed, so that the end of the frame is noticed.
        return 0 if missing == 0 else min(self.admission.forwardable, missing - 1)

    def forwarded(self, size: int) -> None:
        """Note that bytes, of those that are forwardable, have gone to the broker."""
        self._traffic.total.bytes_in += size
        self._splitter.skip_missing(size)
        self.admission.forwarded(size)

    def _must_wait(self, now: float) -> bool:
        """Whether a large request waits because this turn of the event loop has read enough: it may have
        thousands of partitions.
        """
        return self._mode.now == READING and not self._settings.request_turns.take(0, now)

    def _begin_list(self, frame: Frame, now: float) -> None:
        """Read a request that may be a list, or the first part of a large one; or mute the client because it
        waits for its turn.
        """
        api_key = api_key_of(frame)
        if api_key == PRODUCE:
            self._begin(frame, now)
            return
        max_bytes = self._settings.max_list_bytes
        if frame.size > max_bytes:
            check_list(frame, max_bytes)
        turns = self._settings.list_turns
        if turns is None or api_key in NO_LISTS:
            self._begin(frame, now)
            return
        gate = self._list_gate
        if gate is None:
            gate = self._list_gate = ListGate(turns, self._in_flight, self._node_id)
            self.admission.list_gate = gate
        wait = gate.wait_seconds(api_key, frame.size, self.sender.client, now)
        if wait > 0.0:
            self.first_request_seen = True
            self._splitter.put_back(frame)
            self._in_flight.mute(now + wait)
            return
        before = self._in_flight.count
        self._begin(frame, now)
        if self._mode.now not in (BUFFERING, MEMORY_WAITING):
            gate.read(before, self._mode.now == FIRST_WAITING)

    def call_at_turn(self, wake: Callable[[], None]) -> None:
        """Have a function called when it may be the turn of the list that waits. Then call take_turn()."""
        if self._list_gate is not None:
            self._list_gate.call(wake)

    def take_turn(self, now: float) -> None:
        """Read the list that waits if it is its turn."""
        gate = self._list_gate
        if gate is None or not gate.waiting:
            return
        if self._mode.now == FETCH_WAITING:
            self.admission.wake(now)
            if self.may_read:
                self.read(now)
            return
        if self._in_flight.muted_until <= gate.asks_at:
            self._in_flight.end_mute(now)
        if self.may_read:
            self.read(now)
        else:
            gate.give_up()

    def _begin(self, frame: Frame, now: float) -> None:
        """Read a request, or the first part of a large one."""
        if not frame.complete and self.buffer.takes(frame, self.admission.reads_fetches):
            self._begin_buffering(frame, now)
        else:
            self._read_request(frame, now)

    def _begin_buffering(self, part: Frame, now: float) -> None:
        self._mode.change(BUFFERING if self.buffer.begin(part, self.sender.client, now) else MEMORY_WAITING)

    def _ask_for_memory_again(self, now: float) -> None:
        """Continue with the request that waits for memory; quotas may have stopped rejecting meanwhile."""
        part = self.buffer.take_waiting()
        self._mode.change(READING)
        if self.buffer.takes(part, self.admission.reads_fetches):
            self._begin_buffering(part, now)
        else:
            self.buffer.leave_line()
            self._read_request(part, now)

    def _read_buffered(self, part: Frame, now: float) -> None:
        frame = self.buffer.add(part)
        if frame is None:
            return
        self._mode.change(READING)
        before = self._in_flight.count
        self._read_request(frame, now)
        if self._list_gate is not None:
            self._list_gate.read(before, self._mode.now == FIRST_WAITING)
        self.admission.end_buffered()

    def _read_request(self, frame: Frame, now: float) -> None:
        if self._authentication is not None and self._authentication.takes_bare(frame, self.sender.client):
            self._output.forward_to_broker(frame)
            return
        reader = start_reading(frame, self._reader)
        header = read_request_header(reader)
        if self._authentication is not None and not self._authentication.done:
            check_before_login(header)
        self.first_request_seen = True
        client = self.sender.take(header)
        if self.sender.fresh and self._waits_first(frame, header, reader, client, now):
            self._mode.change(FIRST_WAITING)
        else:
            self._dispatch(frame, reader, header, now)
        self._reader.stop()

    def _waits_first(
        self, frame: Frame, header: RequestHeader, reader: Reader, client: Client, now: float
    ) -> bool:
        """Whether the first request of a client on this connection waits for a debt."""
        if self._authentication is not None and not self._authentication.done:
            return False
        first_wait = FirstWait(self._engine)
        waits = first_wait.begins(frame, header, reader.offset, client, now)
        self.sender.fresh = not first_wait.last
        if waits:
            self._first_wait = first_wait
        return waits

    def _dispatch(self, frame: Frame, reader: Reader, header: RequestHeader, now: float) -> None:
        client = self.sender.count(header, frame.size)
        api = self._parser.api(header)
        if header.api_key > FETCH:
            read = check_request(self._settings, frame, header, reader.offset)
            self._more = read >> PARTITIONS_SHIFT
            if header.api_key in MEMBER_REQUESTS:
                self._count_member(frame, header, reader.offset, client, now)
        if api is not None:
            if header.api_version < api.oldest or header.api_version > api.newest:
                response = reject_version(frame, header, api)
                self._weight = UNSUPPORTED_WEIGHT
                logged_in = self._authentication is None or self._authentication.done
                if not logged_in:
                    self._free += 1
                    if self._free > FREE_AT_MOST:
                        raise Malformed(f"more than {FREE_AT_MOST} unknown versions before the login")
                request = self._parser.unread(frame, header, client) if logged_in else None
                exchange = local_exchange(header.correlation_id, client, header.api_key, response)
                self._in_flight.answer(exchange, request, 0, now)
            elif header.api_key == METADATA and covers_client(self._engine, METADATA, client, now):
                whole = unread_body(frame, header, client, api)
                self.interception.hand_out(frame, header, client, api, whole)
            else:
                self._read_body(frame, reader, header, client, api, now)
        elif self._authentication is not None and self._authentication.takes(frame, header, reader, client):
            self._output.forward_to_broker(frame)
            if self._authentication.done:
                self._in_flight.charge_login(self._parser.unread(frame, header, client), now)
        else:
            request = self._parser.unread(frame, header, client)
            if self._answers(header.api_key, client, now):
                self.interception.hand_out(frame, header, client, None, request)
                return
            exchange = Exchange(header.correlation_id, client, api_key=header.api_key, request=request)
            self.admission.take_unread(frame, exchange, reader, now)

    def _count_member(
        self, frame: Frame, header: RequestHeader, body_at: int, client: Client, now: float
    ) -> None:
        """Count the bytes of a member of a group. Raises Malformed if the client has given too many."""
        members = self._settings.group_members
        if members is None:
            return
        if self._group_gate is None:
            self._group_gate = GroupGate(members, self._node_id)
        self._group_gate.take(frame, header, body_at, client, now)

    def _answers(self, api_key: int, client: Client, now: float) -> bool:
        """Whether the proxy answers this client's requests of an API."""
        engine = self._engine
        if covers(engine, self._settings.intercepted_api_keys, api_key):
            return True
        return covers_client(engine, api_key, client, now)

    def _read_body(
        self, frame: Frame, reader: Reader, header: RequestHeader, client: Client, api: Api, now: float
    ) -> None:
        body_at = reader.offset
        view = self._parser.read(frame, reader, header, client, api)
        if header.api_key == PRODUCE:
            if view.topics > UNCHECKED and frame.complete:
                check_request(self._settings, frame, header, body_at)
            self.sends_unanswered = view.acks == 0
            self._more = len(view.items) >> PARTITIONS_SHIFT
        exchange = Exchange(header.correlation_id, client, api_key=header.api_key, api=api, request=view)
        self.admission.take(frame, exchange, reader, view, now)

    def wake(self, now: float) -> None:
        """Ask again for what a request waits for; read() asks again for memory. Raises RelayError if a large
        request has not arrived in time, or has an unknown topic.
        """
        if self._mode.now == BUFFERING:
            self.buffer.check_pace(now)
        elif self._first_wait is not None:
            if self._first_wait.over(now):
                self._end_first_wait(self._first_wait.take(), now)
        else:
            self.admission.wake(now)

    def _end_first_wait(self, frame: Frame, now: float) -> None:
        """Continue with the request that has waited."""
        self._first_wait = None
        self._mode.change(READING)
        buffer = self.admission.buffer
        shared = buffer is not None and buffer.shared
        if self._list_gate is not None and frame.complete and not shared and not self.sender.fresh:
            # It is read again, because other lists may be in flight.
            self._splitter.put_back(frame)
            return
        reader = start_reading(frame, self._reader)
        header = read_request_header(reader)
        self._dispatch(frame, reader, header, now)
        self._reader.stop()
        if frame.complete:
            self.admission.end_buffered()

    def end(self) -> None:
        """End the parts of this direction, because the connection is over."""
        self.admission.end()
        if self._list_gate is not None:
            self._list_gate.end()
        if self._group_gate is not None:
            self._group_gate.end()
        if self.admission.buffer is not None:
            self.admission.buffer.end()
        self.sender.end()
