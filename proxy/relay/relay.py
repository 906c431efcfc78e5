"""Relay: one client connection and its broker connection.

Bytes go in with receive_from_client() and receive_from_broker(), come out with take_to_client() and
take_to_broker(), and next_timer() says when handle_timer() is due. `now` is seconds on one monotonic clock.

A request is judged when it has been read. If its client has to wait, reading ends there (KIP-219's mute):
requests behind it stay unread, and its answer, which is not held up, announces in throttle_time_ms what is
left of the wait. A client whose version has no such field gets the answer when the wait is over.
"""

import math
from collections import deque
from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.relay.cut_through import CutThrough
from proxy.relay.errors import BROKER_PROTOCOL_ERROR, CLIENT_PROTOCOL_ERROR, RelayError
from proxy.relay.exchange import Client, Exchange
from proxy.relay.garbage import looks_like
from proxy.relay.local import unsupported_api_versions
from proxy.relay.traffic import Traffic
from proxy.wire.addresses import Addresses
from proxy.wire.apis import Api, RequestHeader, read_request_header
from proxy.wire.edit import LENGTH_SIZE, Edit, apply, i32, insert, with_length
from proxy.wire.errors import FrameTooLarge, Malformed, ProtocolError, Short, UnsupportedVersion
from proxy.wire.frames import Frame, FrameSplitter
from proxy.wire.reader import Reader
from proxy.wire.registry import BY_KEY
from proxy.wire.views import RequestView, ResponseView
from proxy.wire.walk import HEAD

API_VERSIONS: Final = 18
RESPONSE_HOLD_BYTES: Final = 4096
"""A large response passes once so much is there: enough for its header and what stands before its topics."""
MAX_RESPONSE_BYTES: Final = 2**31 - 1
MAX_THROTTLE_MS: Final = 2**31 - 1


@final
class Relay:
    """Raises RelayError when the connection has to end."""

    def __init__(
        self,
        engine: QuotaEngine,
        addresses: Addresses,
        traffic: Traffic,
        principal: str,
        client_address: str,
        max_frame_bytes: int,
    ) -> None:
        self._engine: Final = engine
        self._addresses: Final = addresses
        self._traffic: Final = traffic
        self._requests: Final = FrameSplitter(max_frame_bytes)
        self._responses: Final = FrameSplitter(MAX_RESPONSE_BYTES, RESPONSE_HOLD_BYTES)
        self._exchanges: Final[deque[Exchange]] = deque()
        self._client = Client(Identity(principal, "", client_address), traffic.client(principal, ""))
        self._passing_request: CutThrough | None = None
        self._passing_response: CutThrough | None = None
        self._to_client: list[bytes] = []
        self._to_broker: list[bytes] = []
        self._held_back: list[bytes] = []
        """Answers for clients that cannot be told to wait, and all behind them."""
        self._held_until = 0.0
        self._muted_until = 0.0
        self._greeted = False

    # What the shell asks

    @property
    def client_muted(self) -> bool:
        """Whether nothing more may be read from the client now; a frame that is half through goes on."""
        return self._muted_until > 0.0 and not self._requests.in_frame

    @property
    def idle(self) -> bool:
        """Whether no answer is due and no part of a request is there."""
        return not self._exchanges and not self._held_back and not self.request_unfinished

    @property
    def request_unfinished(self) -> bool:
        """Whether bytes of a request are there, and not yet all of them on their way to the broker."""
        return self._requests.buffered > 0 or self._requests.in_frame

    @property
    def greeted(self) -> bool:
        """Whether the client has sent a whole request."""
        return self._greeted

    def take_to_client(self) -> list[bytes]:
        taken = self._to_client
        if taken:
            self._to_client = []
        return taken

    def take_to_broker(self) -> list[bytes]:
        taken = self._to_broker
        if taken:
            self._to_broker = []
        return taken

    def next_timer(self) -> float:
        """When handle_timer() is due; 0 for never."""
        due = self._muted_until
        if self._held_until > 0.0 and (due == 0.0 or self._held_until < due):
            due = self._held_until
        return due

    def handle_timer(self, now: float) -> None:
        if self._held_until > 0.0 and now >= self._held_until:
            self._held_until = 0.0
            self._to_client.extend(self._held_back)
            self._held_back = []
        if self._muted_until > 0.0 and now >= self._muted_until:
            self._muted_until = 0.0
            self._read_requests(now)

    def drain(self, now: float) -> None:
        """The proxy shuts down: what has been read goes to the broker, and no answer waits any longer."""
        self._held_until = min(self._held_until, now)
        while self._muted_until > 0.0:
            self._muted_until = 0.0
            self._read_requests(now)
        self.handle_timer(now)

    # From the client to the broker

    def receive_from_client(self, data: bytes, now: float) -> None:
        self._traffic.total.bytes_in += len(data)
        self._requests.feed(data)
        if self._muted_until > 0.0 and not self._requests.in_frame:
            return
        try:
            self._read_requests(now)
        except FrameTooLarge as error:
            hint = looks_like(data[:4])
            raise RelayError(CLIENT_PROTOCOL_ERROR, f"{error}; {hint}" if hint else str(error)) from error

    def _read_requests(self, now: float) -> None:
        try:
            while self._muted_until == 0.0 or self._requests.in_frame:
                frame = self._requests.next()
                if frame is None:
                    return
                passing = self._passing_request
                if passing is None:
                    self._read_request(frame, now)
                else:
                    self._pass_request(passing, frame)
        except FrameTooLarge:
            raise
        except ProtocolError as error:
            raise RelayError(CLIENT_PROTOCOL_ERROR, str(error)) from error

    def _read_request(self, frame: Frame, now: float) -> None:
        reader = Reader(frame.pieces if frame.complete else list(frame.pieces), LENGTH_SIZE)
        header = read_request_header(reader)
        self._greeted = True
        self._traffic.count_request(header.api_key)
        client = self._client
        if client.who.client_id != header.client_id:
            client = self._change_client(header.client_id)
        client.traffic.bytes_in += frame.size
        api = BY_KEY[header.api_key] if header.api_key < len(BY_KEY) else None
        if api is None:
            exchange = Exchange(header.correlation_id, client, None, None)
            self._exchanges.append(exchange)
            self._forward_request(frame, exchange, reader, None)
        elif header.api_version < api.oldest or header.api_version > api.newest:
            self._refuse_version(header, api)
        else:
            self._read_body(frame, reader, header, api, now)

    def _change_client(self, client_id: str) -> Client:
        who = self._client.who
        who = Identity(who.principal, client_id, who.address)
        self._client = Client(who, self._traffic.client(who.principal, client_id))
        return self._client

    def _refuse_version(self, header: RequestHeader, api: Api) -> None:
        """As brokers do: ApiVersions says which versions there are, any other request ends the connection."""
        if header.api_key != API_VERSIONS:
            raise UnsupportedVersion(
                f"{api.name} v{header.api_version} is not supported; ApiVersions offers up to v{api.newest}"
            )
        exchange = Exchange(header.correlation_id, self._client, None, None)
        exchange.answer = unsupported_api_versions(header.correlation_id, api.oldest, api.newest)
        self._exchanges.append(exchange)
        self._send_answers()

    def _read_body(self, frame: Frame, reader: Reader, header: RequestHeader, api: Api, now: float) -> None:
        version = header.api_version
        flexible = version >= api.flexible_from
        view = RequestView(
            header.api_key,
            version,
            header.correlation_id,
            header.client_id,
            frame.size - LENGTH_SIZE,
            flexible,
            self._traffic.topic_partitions,
        )
        view.partial = not frame.complete
        if flexible:
            reader.skip_tags()
        try:
            api.read_request(reader, view)
        except Short:
            if frame.complete or view.phase == HEAD:
                raise
        exchange = Exchange(header.correlation_id, self._client, api, view)
        self._admit(exchange, view, now)
        if view.acks != 0:
            self._exchanges.append(exchange)
        self._forward_request(frame, exchange, reader, view)

    def _admit(self, exchange: Exchange, view: RequestView, now: float) -> None:
        verdict = self._engine.admit(view, exchange.client.who, now)
        exchange.admitted = verdict
        if verdict.max_bytes >= 0:
            _lower_max_bytes(view, verdict.max_bytes)
        if verdict.throttle_seconds > 0.0:
            exchange.throttled_until = now + verdict.throttle_seconds
            self._mute_until(exchange.throttled_until)

    def _forward_request(
        self, frame: Frame, exchange: Exchange, reader: Reader, view: RequestView | None
    ) -> None:
        if not frame.complete:
            self._passing_request = CutThrough(frame, exchange, reader, view)
            self._to_broker.extend(self._passing_request.take())
        elif view is None:
            self._to_broker.extend(frame.pieces)
        else:
            self._to_broker.extend(apply(frame.pieces, view.edits) if view.edits else frame.pieces)
            if view.items:
                self._traffic.count_in(view.items)

    def _pass_request(self, passing: CutThrough, frame: Frame) -> None:
        passing.feed(frame.pieces)
        view = passing.exchange.request
        api = passing.exchange.api
        if view is not None and api is not None and not view.done:
            try:
                api.read_request(passing.reader, view)
            except Short:
                if frame.complete:
                    raise
        self._to_broker.extend(passing.take())
        if frame.complete:
            self._passing_request = None
            if view is not None:
                self._traffic.count_in(view.items)

    def _mute_until(self, until: float) -> None:
        if until > self._muted_until:
            self._muted_until = until

    # From the broker to the client

    def receive_from_broker(self, data: bytes, now: float) -> None:
        self._traffic.total.bytes_out += len(data)
        self._responses.feed(data)
        try:
            frame = self._responses.next()
            while frame is not None:
                passing = self._passing_response
                if passing is None:
                    self._read_response(frame, now)
                else:
                    passing.feed(frame.pieces)
                    self._pass_response(passing, now)
                frame = self._responses.next()
        except ProtocolError as error:
            raise RelayError(BROKER_PROTOCOL_ERROR, str(error)) from error

    def _read_response(self, frame: Frame, now: float) -> None:
        reader = Reader(frame.pieces if frame.complete else list(frame.pieces), LENGTH_SIZE)
        correlation_id = reader.i32()
        if not self._exchanges:
            raise Malformed(f"an answer (correlation_id {correlation_id}) to no request")
        exchange = self._exchanges.popleft()
        if exchange.correlation_id != correlation_id:
            raise Malformed(
                f"the answer has correlation_id {correlation_id}; "
                f"it is the turn of request {exchange.correlation_id}"
            )
        exchange.client.traffic.bytes_out += frame.size
        api = exchange.api
        request = exchange.request
        if api is None or request is None:
            if frame.complete:
                self._send(frame.pieces)
                self._send_answers()
            else:
                self._passing_response = CutThrough(frame, exchange, reader, None)
                self._pass_response(self._passing_response, now)
            return
        if api.flexible_response_header(request.api_version):
            reader.skip_tags()
        view = ResponseView(
            request.api_version, request.flexible, frame.size - reader.offset, self._traffic.topic_partitions
        )
        if frame.complete:
            api.read_response(reader, request, view, self._addresses)
            self._settle(exchange, request, view, now)
            edits = view.edits
            self._send(
                apply(frame.pieces, with_length(edits, frame.size - LENGTH_SIZE)) if edits else frame.pieces
            )
            self._end_response(exchange, view, now)
        else:
            view.partial = True
            self._passing_response = CutThrough(frame, exchange, reader, view)
            self._pass_response(self._passing_response, now)

    def _pass_response(self, passing: CutThrough, now: float) -> None:
        view = passing.view
        exchange = passing.exchange
        request = exchange.request
        if isinstance(view, ResponseView) and request is not None and exchange.api is not None:
            if not view.done:
                try:
                    exchange.api.read_response(passing.reader, request, view, self._addresses)
                except Short:
                    if passing.frame.complete:
                        raise
            if not passing.settled and (view.done or view.throttle_at >= 0):
                passing.settled = True
                self._settle(exchange, request, view, now)
        self._send(passing.take())
        if passing.frame.complete:
            self._passing_response = None
            self._end_response(exchange, view if isinstance(view, ResponseView) else None, now)

    def _settle(self, exchange: Exchange, request: RequestView, view: ResponseView, now: float) -> None:
        """Charge a response, announce the wait in it, and mute its client."""
        until = exchange.throttled_until
        verdict = self._engine.charge(request, view, exchange.client.who, now, exchange.admitted)
        if verdict.throttle_seconds > 0.0 and now + verdict.throttle_seconds > until:
            until = now + verdict.throttle_seconds
            self._mute_until(until)
        if until <= now:
            return
        throttle_time_ms = min(math.ceil((until - now) * 1000.0), MAX_THROTTLE_MS)
        if view.throttle_at < 0:
            self._held_until = max(self._held_until, until)
        elif throttle_time_ms > view.throttle_time_ms:
            insert(view.edits, Edit(view.throttle_at, view.throttle_at + 4, i32(throttle_time_ms)))

    def _end_response(self, exchange: Exchange, view: ResponseView | None, now: float) -> None:
        if view is not None and view.items and view.want_items:
            self._traffic.count_out(view.items)
        self._send_answers()

    def _send(self, pieces: list[bytes]) -> None:
        if self._held_until > 0.0:
            self._held_back.extend(pieces)
        else:
            self._to_client.extend(pieces)

    def _send_answers(self) -> None:
        """Send the proxy's own answers whose turn it is."""
        while self._exchanges:
            answer = self._exchanges[0].answer
            if answer is None:
                return
            exchange = self._exchanges.popleft()
            exchange.client.traffic.bytes_out += len(answer)
            self._send([answer])


def _lower_max_bytes(view: RequestView, max_bytes: int) -> None:
    """Let the broker send no more than the quota allows, and not wait for more than that (KAFKA-9677)."""
    if view.max_bytes <= max_bytes:
        return
    if view.min_bytes > max_bytes:
        view.edits.append(Edit(view.min_bytes_at, view.min_bytes_at + 4, i32(max_bytes)))
    if view.max_bytes_at >= 0:
        view.edits.append(Edit(view.max_bytes_at, view.max_bytes_at + 4, i32(max_bytes)))
    for at in view.partition_max_bytes_at:
        view.edits.append(Edit(at, at + 4, i32(max_bytes)))
