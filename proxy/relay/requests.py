"""Requests: the direction from the client to the broker."""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.relay.bounds import lower_max_bytes
from proxy.relay.close_reasons import PRODUCE_REJECTED, RelayError
from proxy.relay.cut_through import CutThrough
from proxy.relay.exchange import Client, Exchange, local_exchange, new_client
from proxy.relay.fetch.gate import FetchGate
from proxy.relay.frame_buffer import MAX_BUFFERED_FRAME_BYTES, FrameBuffer
from proxy.relay.inflight import InFlight
from proxy.relay.intercepted import Intercepted, Interception
from proxy.relay.login.authentication import Authentication
from proxy.relay.passing_bytes import count_items, count_later, count_rest
from proxy.relay.produce_gate import ProduceGate
from proxy.relay.traffic import Traffic
from proxy.relay.unsupported_version import reject_version
from proxy.wire.api_keys import FETCH, PRODUCE
from proxy.wire.apis import Api, RequestHeader, read_request_header
from proxy.wire.edit import LENGTH_SIZE, apply, with_length
from proxy.wire.errors import Malformed, Short
from proxy.wire.frames import CUT_THROUGH_BYTES, Frame, FrameSplitter, start_reading
from proxy.wire.reader import NOTHING, Reader
from proxy.wire.registry import WITHOUT_INTERCEPTED, ApiTable
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import RequestView
from proxy.wire.walk import HEAD


@final
class Requests:
    """Raises ProtocolError, the client's fault."""

    def __init__(
        self,
        engine: QuotaEngine,
        traffic: Traffic,
        in_flight: InFlight,
        who: Identity,
        max_frame_bytes: int,
        intercepted_api_keys: frozenset[int],
        names: TopicNames,
        between_brokers: bool = False,
        node_id: int = -1,
        apis: ApiTable = WITHOUT_INTERCEPTED,
    ) -> None:
        self._node_id: Final = node_id
        self._engine: Final = engine
        self._traffic: Final = traffic
        self._in_flight: Final = in_flight
        self._intercepted_api_keys: Final = intercepted_api_keys
        self._names: Final = names
        self._between_brokers: Final = between_brokers
        self._apis: Final = apis.read_between_brokers if between_brokers else apis.read
        self._splitter: Final = FrameSplitter(max_frame_bytes)
        self._client = new_client(who, b"", traffic, node_id)
        self._passing: CutThrough | None = None
        self._reader: Final = Reader(NOTHING)
        """Reads every request that comes whole, one after the other."""
        self._to_broker = NOTHING
        self._interception: Final = Interception(in_flight)
        self._rejecting: Final = ProduceGate(engine, in_flight, names)
        self._whole: Final = FrameBuffer()
        self._held: Final = FetchGate(engine, in_flight, names, between_brokers)
        self.authentication: Authentication | None = None
        self.first_request_seen = False
        """Whether a request has been read."""

    @property
    def may_read(self) -> bool:
        """Whether the next request may be read; a frame that is half through always goes on."""
        in_flight = self._in_flight
        may = (
            in_flight.muted_until == 0.0
            and not in_flight.awaiting_response
            and not in_flight.full
            and not self._held.waiting
        )
        return may or self._splitter.in_frame

    @property
    def waiting(self) -> bool:
        """Whether a request has been read that is neither answered nor on its way to the broker."""
        return self._held.waiting

    @property
    def wake_at(self) -> float:
        """When wake() is due; 0.0 for never."""
        return self._held.wake_at

    @property
    def follower(self) -> tuple[int, int] | None:
        """The node id of the follower that the client is, and how many messages it lacks."""
        return self._held.follower

    @property
    def unfinished(self) -> bool:
        """Whether bytes of a request are there, and not yet all of them on their way to the broker."""
        return self._splitter.buffered > 0 or self._splitter.in_frame

    def take(self) -> list[bytes]:
        """What may leave for the broker now."""
        taken = self._to_broker
        self._to_broker = NOTHING
        return taken

    def _send(self, pieces: list[bytes]) -> None:
        """Bytes for the broker; the list is no longer the caller's."""
        if self._to_broker:
            self._to_broker.extend(pieces)
        else:
            self._to_broker = pieces

    def take_intercepted(self) -> list[Intercepted]:
        return self._interception.take()

    def ask(self, exchange: Exchange, frame: bytes, now: float) -> None:
        """Send the broker a request of the proxy's own, for the sake of an intercepted one."""
        exchange.sent_at = now
        self._send([frame])
        self._in_flight.ask(exchange)

    def feed(self, data: bytes) -> None:
        self._traffic.total.bytes_in += len(data)
        self._splitter.feed(data)

    def read(self, now: float) -> None:
        """Read what has come, as far as it may be read."""
        if self._rejecting.ending and self.may_read:
            raise RelayError(PRODUCE_REJECTED, self._rejecting.ending)
        while self.may_read:
            frame = self._splitter.next()
            if frame is None:
                return
            passing = self._passing
            if self._interception.open:
                self._interception.go_on(frame)
            elif passing is not None:
                self._pass(passing, frame, now)
            elif frame.complete and not self._whole.open:
                self._read_request(frame, now)
            else:
                self._read_large(frame, now)

    def _read_large(self, frame: Frame, now: float) -> None:
        """Read a request of which only the beginning is there, or hold it until it is whole."""
        if self._whole.open:
            whole = self._whole.go_on(frame)
            if whole is not None:
                self._read_request(whole, now)
        elif self._is_held_whole(frame):
            self._whole.begin(frame)
        else:
            self._read_request(frame, now)

    def _is_held_whole(self, frame: Frame) -> bool:
        """Whether a quota may take something out of it: a fetch, or a Produce request."""
        rejects = self._engine.rejects
        holds = self._held.reads
        if not (rejects or holds) or frame.size > MAX_BUFFERED_FRAME_BYTES:
            return False
        api_key = Reader(frame.pieces, LENGTH_SIZE).i16()
        return rejects if api_key == PRODUCE else holds and api_key == FETCH

    def _read_request(self, frame: Frame, now: float) -> None:
        if self.authentication is not None and self.authentication.takes_bare(frame, self._client):
            self._send(frame.pieces)
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
                self._reject_version(frame, header, api)
            else:
                self._read_body(frame, reader, header, client, api, now)
        elif self.authentication is not None and self.authentication.takes(frame, header, reader, client):
            self._send(frame.pieces)
        elif self._answers(header.api_key):
            request = self._unread(frame, header, client)
            exchange = Exchange(
                header.correlation_id, client, api_key=header.api_key, request=request, local=True
            )
            self._interception.begin(exchange, header, frame)
        else:
            request = self._unread(frame, header, client)
            exchange = Exchange(header.correlation_id, client, api_key=header.api_key, request=request)
            self._in_flight.add(exchange)
            self._forward(frame, exchange, reader, None, now)

    def _answers(self, api_key: int) -> bool:
        """Whether the proxy answers requests of this API itself; never before a broker would."""
        if self.authentication is not None and not self.authentication.done:
            return False
        return api_key in self._intercepted_api_keys or self._engine.intercepts(api_key)

    def _api(self, header: RequestHeader) -> Api | None:
        """How to read a request; None for not at all."""
        if header.api_key >= len(self._apis):
            return None
        api = self._apis[header.api_key]
        if api is None or not self._between_brokers or api.oldest <= header.api_version <= api.newest:
            return api
        self._traffic.unread_fetches += 1
        return None

    def _unread(self, frame: Frame, header: RequestHeader, client: Client) -> RequestView | None:
        """What the quotas see of a request that nobody reads; None where none of them asks."""
        if not self._engine.covers(header.api_key):
            return None
        size = frame.size - LENGTH_SIZE
        client_id = client.client_id
        return RequestView(header.api_key, header.api_version, header.correlation_id, client_id, size)

    def _change_client(self, raw_client_id: bytes) -> Client:
        self._client = new_client(self._client, raw_client_id, self._traffic, self._node_id)
        return self._client

    def rename(self, principal: str) -> None:
        """The client has logged in as this user."""
        if self._client.principal != principal:
            who = Identity(principal, "", self._client.address)
            self._client = new_client(who, self._client.raw_client_id, self._traffic, self._node_id)

    def _reject_version(self, frame: Frame, header: RequestHeader, api: Api) -> None:
        response = reject_version(frame, header, api)
        self._in_flight.add(local_exchange(header.correlation_id, self._client, header.api_key, response))

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
        )
        view.partial = not frame.complete
        if view.flexible:
            reader.skip_tags()
        rejectable = self._engine.rejects and header.api_key == PRODUCE
        body_at = 0
        if rejectable:
            view.want_heads = True
            body_at = reader.offset
        try:
            api.read_request(reader, view)
        except Short:
            if frame.complete or view.phase == HEAD:
                raise
        if view.client_software:
            self._rejecting.client_is(view.client_software)
        exchange = Exchange(header.correlation_id, client, api_key=header.api_key, api=api, request=view)
        if rejectable and frame.complete and self._rejecting.reject(frame, exchange, view, body_at, now):
            return
        self._admit(exchange, view, now)
        if header.api_key == FETCH and self._held.reads and not self._held.passes(frame, exchange, view, now):
            return
        self._pass_on(frame, exchange, reader, view, now)

    def _pass_on(
        self, frame: Frame, exchange: Exchange, reader: Reader, view: RequestView, now: float
    ) -> None:
        """Nothing keeps the request from the broker."""
        if view.api_key == FETCH:
            exchange.streams = not view.bounded and not view.want_items and view.fetch_rewrite is None
        if view.acks != 0:
            self._in_flight.add(exchange)
        self._forward(frame, exchange, reader, view, now)

    def wake(self, now: float) -> None:
        """Something may be left by now of the fetch that waits."""
        fetch = self._held.wake(now)
        if fetch is not None:
            self._pass_on(fetch.frame, fetch.exchange, self._reader, fetch.view, now)

    def give_up_waiting(self, now: float) -> None:
        """Answer the fetch that waits."""
        self._held.give_up(now)

    def _admit(self, exchange: Exchange, view: RequestView, now: float) -> None:
        if view.items and not view.items[0].topic:
            self._names.fill(view.items)
        verdict = self._engine.admit(view, exchange.client, now)
        if verdict.max_bytes >= 0:
            lower_max_bytes(view, verdict.max_bytes)
        if verdict.throttle_seconds > 0.0:
            exchange.throttled_until = max(exchange.throttled_until, now + verdict.throttle_seconds)
            self._in_flight.mute(exchange.throttled_until)

    def _forward(
        self, frame: Frame, exchange: Exchange, reader: Reader, view: RequestView | None, now: float
    ) -> None:
        if not frame.complete:
            self._passing = CutThrough(frame, exchange, reader, view)
            self._send(self._passing.take())
            if view is not None:
                count_later(self._passing)
                count_items(self._traffic, self._passing, view)
            return
        exchange.sent_at = now
        if view is None or not view.edited:
            self._send(frame.pieces)
        else:
            self._send(apply(frame.pieces, with_length(view.edits, frame.size - LENGTH_SIZE)))
        if view is not None and self._traffic.want_items:
            self._traffic.count_in(view.items)
            usage = exchange.client.usage
            if usage is not None:
                usage.divide_in(exchange.api_key, view.items)

    def end(self) -> None:
        """The connection is over."""
        if self._passing is not None:
            count_rest(self._passing)

    def _judge_more(self, exchange: Exchange, view: RequestView, now: float) -> None:
        """Have the quotas judge items of a large frame that have come after it was admitted."""
        if not view.items[0].topic:
            self._names.fill(view.items)
        until = exchange.throttled_until
        verdict = self._engine.charge_items(view, view.items, exchange.client, now, until)
        if verdict.throttle_seconds > 0.0:
            exchange.throttled_until = max(until, now + verdict.throttle_seconds)
            self._in_flight.mute(exchange.throttled_until)

    def _pass(self, passing: CutThrough, frame: Frame, now: float) -> None:
        passing.feed(frame.pieces)
        view = passing.exchange.request
        api = passing.exchange.api
        if view is not None and api is not None and not view.done:
            try:
                api.read_request(passing.reader, view)
            except Short:
                if frame.complete:
                    raise
        self._send(passing.take())
        if view is not None:
            if passing.waiting > CUT_THROUGH_BYTES:
                raise Malformed(f"a field of the request is longer than {CUT_THROUGH_BYTES} bytes")
            if view.items:
                self._judge_more(passing.exchange, view, now)
                count_items(self._traffic, passing, view)
        if frame.complete:
            passing.exchange.sent_at = now
            count_rest(passing)
            self._passing = None
