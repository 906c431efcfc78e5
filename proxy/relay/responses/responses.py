"""Responses: the direction from the broker to the client."""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.engine import QuotaEngine
from proxy.relay.budgets.read_turns import (
    FREE_FRAMES,
    LARGE_BYTES,
    PARTITIONS_SHIFT,
    PAUSE_SECONDS,
)
from proxy.relay.counters.broker_errors import BrokerErrors
from proxy.relay.counters.traffic import Traffic
from proxy.relay.cut_through import CutThrough
from proxy.relay.exchange import Exchange
from proxy.relay.frame_buffer import FrameBuffer
from proxy.relay.inflight import InFlight
from proxy.relay.login.authentication import Authentication
from proxy.relay.modes import (
    AWAITING_PORTS,
    BUFFERING,
    COLLECTING,
    CUTTING_THROUGH,
    READING,
    RESPONSE_MODES,
    Mode,
)
from proxy.relay.output import RelayOutput
from proxy.relay.produced_records import abandon_request
from proxy.relay.responses.charges import ResponseCharges
from proxy.relay.responses.cut_through import ResponseCutThrough
from proxy.relay.responses.late_responses import LateResponses
from proxy.relay.responses.whole_responses import WholeResponses
from proxy.relay.settings import RelaySettings
from proxy.wire.addresses import Addresses, UnknownBrokers
from proxy.wire.api_keys import FETCH, FIND_COORDINATOR
from proxy.wire.apis.api import Api
from proxy.wire.apis.api_01_fetch import has_every_item
from proxy.wire.cursor import Cursor
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed
from proxy.wire.frames import CUT_THROUGH_BYTES, Frame, FrameSplitter, start_reading
from proxy.wire.reader import Reader
from proxy.wire.spare_items import SpareItems
from proxy.wire.views import RequestView, ResponseView

FIRST_PART_BYTES: Final = 4096
"""A large response is forwarded when this many bytes have arrived: enough for its header and the fields
before its topics.
"""
STREAM_BYTES: Final = 64 << 10
"""A Fetch response of this size or more is forwarded while it arrives, unless the proxy has to read to its
end first: its bytes are still in the processor's cache, or never leave the kernel. For smaller responses, the
additional calls cost more than that saves.
"""
MAX_RESPONSE_BYTES: Final = 2**31 - 1
"""The largest length of a frame. There is no lower limit, because large ones are forwarded while they arrive.
"""


@final
class Responses:
    """The responses of one connection. Raises ProtocolError for faults of the broker."""

    def __init__(
        self,
        engine: QuotaEngine,
        traffic: Traffic,
        in_flight: InFlight,
        output: RelayOutput,
        *,
        addresses: Addresses,
        settings: RelaySettings,
        errors: BrokerErrors,
        authentication: Authentication | None = None,
        spare_items: SpareItems,
    ) -> None:
        """`authentication`: None if logins do not name the clients."""
        self._engine: Final = engine
        self.charges: Final = ResponseCharges(engine, in_flight, settings.topic_names, settings.service_clock)
        self._traffic: Final = traffic
        self._in_flight: Final = in_flight
        self._output: Final = output
        self._addresses: Final = addresses
        self._errors: Final = errors
        self._whole: Final = WholeResponses(
            traffic=traffic,
            in_flight=in_flight,
            charges=self.charges,
            addresses=addresses,
            errors=errors,
            spare_items=spare_items,
        )
        self._authentication: Final = authentication
        self._splitter: Final = FrameSplitter(MAX_RESPONSE_BYTES, FIRST_PART_BYTES)
        self._settings: Final = settings
        self._reader: Final = settings.reader
        self._mode: Final = Mode(RESPONSE_MODES)
        self._buffer: FrameBuffer | None = None
        """None before the first response that is buffered."""
        self._buffered: Exchange | None = None
        """In the modes BUFFERING and COLLECTING, the exchange whose response is in the buffer."""
        self._large: ResponseCutThrough | None = None
        """In the mode CUTTING_THROUGH, it has the response that is forwarded while it arrives. Created with
        the first one.
        """
        self._ports_given = False
        """Whether the shell has just added all brokers that a response lacked to the table of addresses."""
        self._awaiting: Frame | None = None
        """The response to read again when its brokers have ports; None if that is the response that is cut
        through.
        """
        self._awaiting_exchange: Exchange | None = None
        self._free: native = 0
        """The number of responses that may be read without asking the response turns."""
        self.resume_at = 0.0
        """When resume() is due, because responses have arrived that this turn of the loop does not read; 0.0
        for never.
        """

    @property
    def _cut_through(self) -> ResponseCutThrough:
        large = self._large
        assert large is not None, "a response is cut through"
        return large

    def broker_reached(self, now: float) -> None:
        """Note that the broker is connected."""
        self.charges.responded(now)

    @property
    def forwardable(self) -> int:
        """The number of following bytes that may go directly to the client; see forwarded()."""
        missing = self._splitter.missing
        large = self._large
        if missing == 0 or large is None or self._in_flight.delayed_until > 0.0:
            return 0
        # The last byte is fed, so that the end of the frame is noticed.
        return min(large.forwardable, missing - 1)

    def forwarded(self, size: int) -> None:
        """Note that bytes, of those that are forwardable, have gone to the client."""
        self._traffic.total.bytes_out += size
        self._splitter.skip_missing(size)
        self._cut_through.forwarded(size)

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes from the broker."""
        self._traffic.total.bytes_out += len(data)
        self._splitter.feed(data)
        if self.resume_at == 0.0:
            self._read(now)

    def resume(self, now: float) -> None:
        """Read on in another turn of the event loop."""
        self.resume_at = 0.0
        self._read(now)

    def _read(self, now: float) -> None:
        self._free = FREE_FRAMES
        while self._mode.now != AWAITING_PORTS:
            if self._splitter.buffered >= LARGE_BYTES and self._pauses_before(now):
                return
            frame = self._next()
            if frame is None:
                return
            mode = self._mode.now
            if mode == READING:
                self._read_response(frame, now)
            elif mode == CUTTING_THROUGH:
                self._cut_through.add(frame.pieces)
                self._read_cut(now)
            else:
                self._add_to_buffer(frame, now)
            if frame.complete:
                self.charges.responded(now)
            self._free -= 1
            if self._free <= 0 and self._pauses(now):
                return

    def _pauses_before(self, now: float) -> bool:
        """Return whether a large response waits because this turn of the event loop has read enough: it may
        have thousands of partitions.
        """
        if self._settings.response_turns.take(0, now):
            return False
        self.resume_at = now + PAUSE_SECONDS
        return True

    def _pauses(self, now: float) -> bool:
        """Return whether the responses that have arrived are read in a later turn of the event loop."""
        read = 1 - self._free
        self._free = 1
        if self._settings.response_turns.take(read, now) or self._splitter.buffered == 0:
            return False
        self.resume_at = now + PAUSE_SECONDS
        return True

    def _next(self) -> Frame | None:
        self._splitter.whole_bytes = STREAM_BYTES if self._in_flight.streams else CUT_THROUGH_BYTES
        return self._splitter.next()

    def _read_response(self, frame: Frame, now: float) -> None:
        authentication = self._authentication
        if authentication is not None and authentication.takes_response(frame):
            self._in_flight.send_frame(frame)
            self._in_flight.send_local()
            return
        self._dispatch(frame, start_reading(frame, self._reader), now)
        self._reader.stop()

    def _dispatch(self, frame: Frame, reader: Reader, now: float) -> None:
        exchange = self._in_flight.take_response(reader.i32())
        if exchange.local:
            if frame.complete:
                self._collect(exchange, frame, now)
            else:
                self._start_buffering(COLLECTING, exchange, frame)
        elif not frame.complete and (_read_whole(exchange) or not self._may_stream(exchange, frame, reader)):
            self._start_buffering(BUFFERING, exchange, frame)
            self._in_flight.begin_response()
        else:
            self._read_header(frame, reader, exchange, now)

    def _may_stream(self, exchange: Exchange, frame: Frame, reader: Reader) -> bool:
        """Whether to forward a response while it arrives, of which the first part is there. If its partitions
        count, and it is small enough to be read whole, this part must have the sizes of all of them: once
        records have left, the client can get neither a throttle_time_ms nor an empty response.
        """
        request = exchange.request
        if frame.size > CUT_THROUGH_BYTES or request is None or not self._wants_items(FETCH):
            return True
        return has_every_item(reader, request)

    def _wants_items(self, api_key: native) -> bool:
        return self._traffic.want_items or self._engine.wants_items(api_key)

    def _start_buffering(self, mode: int, exchange: Exchange, part: Frame) -> None:
        self._mode.change(mode)
        self._buffered = exchange
        if self._buffer is None:
            self._buffer = FrameBuffer()
        self._buffer.add(part)

    def _add_to_buffer(self, part: Frame, now: float) -> None:
        exchange = self._buffered
        assert self._buffer is not None, "_start_buffering() has taken the first part"
        frame = self._buffer.add(part)
        if frame is None or exchange is None:
            return
        collected = self._mode.now == COLLECTING
        self._buffered = None
        self._mode.change(READING)
        if collected:
            self._collect(exchange, frame, now)
        else:
            self._in_flight.end_response()
            reader = Reader(frame.pieces, LENGTH_SIZE)
            reader.i32()  # correlation_id
            self._read_header(frame, reader, exchange, now)

    def _collect(self, exchange: Exchange, frame: Frame, now: float) -> None:
        """Output a response to a request of the proxy."""
        payload = b"".join(frame.pieces)
        # receive() has counted these bytes, but they are not for the client.
        self._traffic.total.bytes_out -= len(payload)
        self._output.add_broker_response(payload[LENGTH_SIZE:])
        if exchange.request is not None:
            # It used the broker's time as if the client had sent the request.
            view = ResponseView(
                exchange.request.api_version, False, frame.size - LENGTH_SIZE, cursor=self._settings.cursor
            )
            exchange.throttled_until = self.charges.charge(exchange, exchange.request, view, now)

    def _read_header(self, frame: Frame, reader: Reader, exchange: Exchange, now: float) -> None:
        """Read a response; the reader is behind its correlation_id."""
        if exchange.sent_at > 0.0:
            self._traffic.broker_times.note(exchange.api_key, self.charges.service_seconds(exchange, now))
        if exchange.silent:
            self._whole.read_silent(frame, reader, exchange, now)
            self._in_flight.count_throttle(exchange)
            return
        exchange.client.traffic.bytes_out += frame.size
        usage = exchange.client.usage
        if usage is not None:
            usage.count_out(exchange.api_key, frame.size)
        api = exchange.api
        request = exchange.request
        if api is not None and request is not None:
            self._read_body(frame, reader, exchange, api, request, now)
            return
        if request is not None:
            view = ResponseView(
                request.api_version, False, frame.size - reader.offset, cursor=self._settings.cursor
            )
            self.charges.charge_unread(exchange, request, frame.pieces, view, now)
        if frame.complete:
            self._in_flight.count_throttle(exchange)
            self._in_flight.send_frame(frame)
            self._in_flight.send_local()
        else:
            self._start_cut_through(CutThrough(frame, exchange, reader, None), now)

    def _read_body(
        self, frame: Frame, reader: Reader, exchange: Exchange, api: Api, request: RequestView, now: float
    ) -> None:
        """Read the fields of a response; the reader is behind its correlation_id."""
        if api.flexible_response_header(request.api_version):
            reader.skip_tags()
        view = self._new_view(frame, reader, api, request)
        if not frame.complete:
            view.partial = True
            self._start_cut_through(CutThrough(frame, exchange, reader, view), now)
            return
        try:
            partitions = self._whole.read(
                frame, reader, exchange, api=api, request=request, view=view, now=now
            )
        except UnknownBrokers as unknown:
            self._read_again_later(frame, exchange, unknown)
        else:
            self._free -= partitions >> PARTITIONS_SHIFT

    def _new_view(self, frame: Frame, reader: Reader, api: Api, request: RequestView) -> ResponseView:
        """The view of a response whose body begins at the reader's offset."""
        want_items = self._wants_items(api.key)
        rewrite = request.fetch_rewrite
        if rewrite is not None and rewrite.reads_partitions:
            want_items = True
        body_size = frame.size - reader.offset
        cursor = self._settings.cursor
        if frame.complete:
            cursor.start()
        else:
            cursor = Cursor()  # the response is cut through, and outlives this call
        return ResponseView(request.api_version, request.flexible, body_size, want_items, cursor)

    def _read_again_later(self, frame: Frame, exchange: Exchange, unknown: UnknownBrokers) -> None:
        """Keep a response until its brokers have ports."""
        self._await_ports(unknown)
        # The splitter uses the frame object again for the next frame.
        self._awaiting = Frame(frame.pieces, frame.size, True)
        self._awaiting_exchange = exchange
        self._in_flight.begin_response()

    def _start_cut_through(self, cut: CutThrough, now: float) -> None:
        if self._large is None:
            self._large = ResponseCutThrough(
                traffic=self._traffic,
                in_flight=self._in_flight,
                charges=self.charges,
                addresses=self._addresses,
                errors=self._errors,
            )
        self._mode.change(CUTTING_THROUGH)
        self._large.begin(cut)
        self._read_cut(now)

    def _read_cut(self, now: float) -> None:
        """Read and forward what has arrived of a response that is cut through."""
        try:
            if self._cut_through.read(now):
                self._mode.change(READING)
        except UnknownBrokers as unknown:
            self._await_ports(unknown)

    def _await_ports(self, unknown: UnknownBrokers) -> None:
        if self._ports_given:
            raise Malformed(f"a response has a broker at two addresses: {unknown}")
        self._mode.change(AWAITING_PORTS)
        self._output.await_ports(unknown.brokers)

    def brokers_known(self, now: float) -> None:
        """Read again the response that has waited for its brokers' ports, and continue behind it."""
        self._ports_given = True
        self._read_awaiting(now)
        self._ports_given = False
        self._read(now)

    def _read_awaiting(self, now: float) -> None:
        frame = self._awaiting
        exchange = self._awaiting_exchange
        if self._large is not None and self._large.active:
            self._mode.change(CUTTING_THROUGH)
            self._cut_through.add([])
            self._read_cut(now)
        elif frame is not None and exchange is not None:
            self._mode.change(READING)
            self._awaiting = None
            self._awaiting_exchange = None
            self._in_flight.end_response()
            api = exchange.api
            request = exchange.request
            assert api is not None, "only responses that are read have addresses"
            assert request is not None, "the same"
            reader = Reader(frame.pieces, LENGTH_SIZE)
            reader.i32()  # correlation_id
            self._read_body(frame, reader, exchange, api, request, now)

    def late(self, by_time: bool) -> LateResponses:
        """Return the reader of what the broker sends after end(). `by_time`: whether quotas charge the time
        of requests.
        """
        return LateResponses(
            self._splitter,
            self._in_flight,
            self.charges,
            self._addresses,
            self._errors,
            self._settings.response_turns,
            by_time=by_time,
        )

    def end(self) -> None:
        """Count the records of responses that have not arrived completely, because the connection is over."""
        if self._large is not None:
            self._large.end()
        abandon_request(self._traffic, self._buffered)
        abandon_request(self._traffic, self._awaiting_exchange)


def _read_whole(exchange: Exchange) -> bool:
    """Whether a large response is read only when it is complete. Partitions are added to it, and its length
    must include them; or nothing of it is forwarded; or addresses are replaced up to its end.
    """
    return exchange.rejection is not None or exchange.silent or exchange.api_key == FIND_COORDINATOR
