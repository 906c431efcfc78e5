"""Responses: the direction from the broker to the client."""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.relay.cut_through import CutThrough
from proxy.relay.exchange import Exchange
from proxy.relay.inflight import InFlight
from proxy.relay.login.authentication import Authentication
from proxy.relay.produce_gate import throttle_ms
from proxy.relay.traffic import Traffic
from proxy.wire.addresses import Addresses
from proxy.wire.apis import Api
from proxy.wire.edit import LENGTH_SIZE, Edit, apply, i32, insert, with_length
from proxy.wire.errors import Short
from proxy.wire.frames import CUT_THROUGH_BYTES, Frame, FrameSplitter, start_reading
from proxy.wire.reader import NOTHING, Reader
from proxy.wire.rejected_partitions import restore
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import RequestView, ResponseView

HOLD_BYTES: Final = 4096
"""A large response passes once so much is there: enough for its header and what stands before its topics."""
STREAM_BYTES: Final = 64 << 10
"""An answer from this size on passes on while it comes, where nothing but bytes is in it for us: what has
just been read is still in the processor's cache.
"""
MAX_RESPONSE_BYTES: Final = 2**31 - 1


@final
class Responses:
    """Raises ProtocolError, the broker's fault."""

    def __init__(
        self,
        engine: QuotaEngine,
        addresses: Addresses,
        traffic: Traffic,
        in_flight: InFlight,
        names: TopicNames,
    ) -> None:
        self._engine: Final = engine
        self._names: Final = names
        self._addresses: Final = addresses
        self._traffic: Final = traffic
        self._in_flight: Final = in_flight
        self._splitter: Final = FrameSplitter(MAX_RESPONSE_BYTES, HOLD_BYTES)
        self._reader: Final = Reader(NOTHING)
        """Reads every answer that comes whole, one after the other."""
        self._passing: CutThrough | None = None
        self._held: Exchange | None = None
        self._held_pieces: list[bytes] = []
        self._collecting: list[bytes] | None = None
        self._asker: Exchange | None = None
        """For whose sake the proxy has asked what is being collected."""
        self._collected: list[bytes] = []
        self.authentication: Authentication | None = None
        """None where clients are not named by their logins."""
        self._answered_at = 0.0
        """When the last answer had come whole, or the broker was reached: it could begin with a request."""

    def broker_reached(self, now: float) -> None:
        """The broker is connected."""
        self._answered_at = now

    def take_collected(self) -> list[bytes]:
        """Answers to what the proxy has asked: header and body, without the length."""
        taken = self._collected
        if taken:
            self._collected = []
        return taken

    @property
    def forwardable(self) -> int:
        """How many of the next bytes may go straight to the client; see forwarded()."""
        passing = self._passing
        missing = self._splitter.missing
        if passing is None or missing == 0 or self._in_flight.delayed_until > 0.0:
            return 0
        # The last byte comes the usual way, so that the end of the frame is noticed.
        return min(passing.forwardable, missing - 1)

    def forwarded(self, size: int) -> None:
        """So many bytes, of those that are forwardable, have gone to the client."""
        passing = self._passing
        assert passing is not None
        self._traffic.total.bytes_out += size
        self._splitter.skip_missing(size)
        passing.forwarded(size)

    def receive(self, data: bytes, now: float) -> None:
        self._traffic.total.bytes_out += len(data)
        self._splitter.feed(data)
        frame = self._next()
        while frame is not None:
            passing = self._passing
            if self._collecting is not None:
                self._collect(self._collecting, frame, now)
            elif self._held is not None:
                self._hold(self._held, frame, now)
            elif passing is None:
                self._read_response(frame, now)
            else:
                passing.feed(frame.pieces)
                self._pass(passing, now)
            if frame.complete:
                self._answered_at = now
            frame = self._next()

    def _next(self) -> Frame | None:
        self._splitter.whole_bytes = STREAM_BYTES if self._in_flight.streams else CUT_THROUGH_BYTES
        return self._splitter.next()

    def _read_response(self, frame: Frame, now: float) -> None:
        authentication = self.authentication
        if authentication is not None and authentication.takes_response(frame):
            self._in_flight.send(frame.pieces)
            self._in_flight.send_local()
            return
        self._dispatch(frame, start_reading(frame, self._reader), now)
        self._reader.stop()

    def _dispatch(self, frame: Frame, reader: Reader, now: float) -> None:
        exchange = self._in_flight.take_response(reader.i32())
        if exchange.local:
            self._asker = exchange
            self._collect([], frame, now)
            return
        if exchange.rejection is not None and not frame.complete:
            self._held = exchange
            self._in_flight.begin_response()
            self._hold(exchange, frame, now)
            return
        self._read_answer(frame, reader, exchange, now)

    def _hold(self, exchange: Exchange, frame: Frame, now: float) -> None:
        """Keep a large answer until it is whole, to which partitions are to be added."""
        self._held_pieces.extend(frame.pieces)
        if frame.complete:
            whole = Frame(self._held_pieces, frame.size, True)
            self._held = None
            self._held_pieces = []
            self._in_flight.end_response()
            reader = Reader(whole.pieces, LENGTH_SIZE)
            reader.i32()
            self._read_answer(whole, reader, exchange, now)

    def _read_answer(self, frame: Frame, reader: Reader, exchange: Exchange, now: float) -> None:
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
            view = ResponseView(request.api_version, False, frame.size - reader.offset)
            self._charge(exchange, request, view, now)
        if frame.complete:
            self._in_flight.send(frame.pieces)
            self._in_flight.send_local()
        else:
            self._start_passing(CutThrough(frame, exchange, reader, None), now)

    def _read_body(
        self, frame: Frame, reader: Reader, exchange: Exchange, api: Api, request: RequestView, now: float
    ) -> None:
        if api.flexible_response_header(request.api_version):
            reader.skip_tags()
        want_items = self._traffic.want_items or self._engine.wants_items(api.key)
        if request.fetch_rewrite is not None:
            want_items = True
        view = ResponseView(request.api_version, request.flexible, frame.size - reader.offset, want_items)
        if frame.complete:
            api.read_response(reader, request, view, self._addresses)
            if exchange.rejection is not None:
                restore(frame.pieces, frame.size - view.body_size, view, exchange.rejection)
            self._settle(exchange, request, view, now)
            pieces = frame.pieces
            if view.edited:
                pieces = apply(pieces, with_length(view.edits, frame.size - LENGTH_SIZE))
            self._in_flight.send(pieces)
            if self._traffic.want_items:
                self._count_items(exchange, view)
            self._in_flight.send_local()
        else:
            view.partial = True
            passing = CutThrough(frame, exchange, reader, view)
            self._count_later(passing)
            self._start_passing(passing, now)

    def _collect(self, pieces: list[bytes], frame: Frame, now: float) -> None:
        pieces.extend(frame.pieces)
        self._collecting = None if frame.complete else pieces
        if frame.complete:
            payload = b"".join(pieces)
            # These bytes are not for the client, whatever receive() thought.
            self._traffic.total.bytes_out -= len(payload)
            self._collected.append(payload[LENGTH_SIZE:])
            asker = self._asker
            if asker is not None and asker.request is not None:
                # It took the broker's time as if the client had asked itself.
                view = ResponseView(asker.request.api_version, False, frame.size - LENGTH_SIZE)
                asker.throttled_until = self._charge(asker, asker.request, view, now)
            self._asker = None

    def _start_passing(self, passing: CutThrough, now: float) -> None:
        self._passing = passing
        self._in_flight.begin_response()
        self._pass(passing, now)

    def _pass(self, passing: CutThrough, now: float) -> None:
        view = passing.view
        exchange = passing.exchange
        request = exchange.request
        api = exchange.api
        if isinstance(view, ResponseView) and request is not None and api is not None:
            if not view.done:
                try:
                    api.read_response(passing.reader, request, view, self._addresses)
                except Short:
                    if passing.frame.complete:
                        raise
            if not passing.settled and passing.has_read(view.throttle_at):
                passing.settled = True
                self._settle(exchange, request, view, now)
                self._count_passed(passing, view)
            elif passing.settled and view.items:
                self._judge_more(exchange, request, view, now)
                self._count_passed(passing, view)
        self._in_flight.send(passing.take())
        if passing.frame.complete:
            self._passing = None
            self._in_flight.end_response()
            self._count_rest(passing)
            self._in_flight.send_local()

    def _charge(self, exchange: Exchange, request: RequestView, view: ResponseView, now: float) -> float:
        """Charge a response and mute its client; returns until when it has to wait."""
        if exchange.sent_at > 0.0:
            # A broker works on one request of a connection at a time.
            view.service_seconds = now - max(exchange.sent_at, self._answered_at)
        if view.items and not view.items[0].topic:
            self._names.fill(view.items)
        until = exchange.throttled_until
        verdict = self._engine.charge(request, view, exchange.client, now, until)
        if verdict.throttle_seconds > 0.0 and now + verdict.throttle_seconds > until:
            until = now + verdict.throttle_seconds
            self._in_flight.mute(until)
        return until

    def _settle(self, exchange: Exchange, request: RequestView, view: ResponseView, now: float) -> None:
        """Charge a response, and announce the wait in it."""
        if request.fetch_rewrite is not None:
            request.fetch_rewrite.opened()
        until = self._charge(exchange, request, view, now)
        if until <= now:
            return
        if view.throttle_at < 0:
            self._in_flight.delay(until)
            return
        throttle_time_ms = throttle_ms(until - now)
        if throttle_time_ms > view.throttle_time_ms:
            insert(view.edits, Edit(view.throttle_at, view.throttle_at + 4, i32(throttle_time_ms)))
            view.marked_edits += 1

    def _judge_more(self, exchange: Exchange, request: RequestView, view: ResponseView, now: float) -> None:
        """Have the quotas judge items of a large answer whose throttle_time_ms has left: it says nothing of
        this wait, which begins at once.
        """
        if not view.items[0].topic:
            self._names.fill(view.items)
        until = self._in_flight.muted_until
        verdict = self._engine.charge_items(request, view.items, exchange.client, now, until)
        if verdict.throttle_seconds > 0.0:
            self._in_flight.mute(now + verdict.throttle_seconds)

    def _count_items(self, exchange: Exchange, view: ResponseView) -> None:
        self._traffic.count_out(view.items)
        usage = exchange.client.usage
        if usage is not None:
            usage.divide_out(exchange.api_key, view.items)

    def _count_later(self, passing: CutThrough) -> None:
        """Have a large frame's bytes counted not at once, but as they pass, each with its partition."""
        usage = passing.exchange.client.usage
        if usage is not None:
            usage.count_out(passing.exchange.api_key, -passing.frame.size)
            passing.uncounted = passing.frame.size

    def _count_passed(self, passing: CutThrough, view: ResponseView) -> None:
        """Count the items of a large frame that the quotas have judged, and let go of them."""
        if not view.items:
            return
        self._traffic.count_out(view.items)
        usage = passing.exchange.client.usage
        if usage is not None:
            passing.uncounted -= usage.records_out(passing.exchange.api_key, view.items)
        view.items = []

    def _count_rest(self, passing: CutThrough) -> None:
        """Count what of a large frame is no partition's, or has not come."""
        usage = passing.exchange.client.usage
        if usage is not None and passing.uncounted != 0:
            usage.count_out(passing.exchange.api_key, passing.uncounted)
            passing.uncounted = 0

    def end(self) -> None:
        """The connection is over."""
        if self._passing is not None:
            self._count_rest(self._passing)
