"""Connection: a client's socket, the broker's socket, and the session of the relay between them."""

import asyncio
import ssl
from typing import Final, cast, final

from mypy_extensions import i64 as native

from proxy.errors import UpstreamUnavailable
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.connection_wait import ConnectionWait
from proxy.relay.close_reasons import (
    BROKER_CLOSED,
    CLIENT_CLOSED,
    CLIENT_PROTOCOL_ERROR,
    CONNECTION_RATE,
    DRAIN_TIMEOUT,
    BrokerUnreachable,
    RelayError,
)
from proxy.relay.intercepted import Intercepted
from proxy.relay.requests.streams import LATER_PART_BYTES
from proxy.security.alerts import ServerConnection
from proxy.security.tls_reader import TlsReader
from proxy.security.unread_data import keep_unread_data
from proxy.server.connection.broker.events import BrokerEvents
from proxy.server.connection.broker.side import TLS_WRITE_BUFFER_BYTES, WRITE_BUFFER_BYTES, BrokerSide
from proxy.server.connection.bulk_reads import BULK_BYTES, SPLICED_SHIFT
from proxy.server.connection.drain import SLOW_SECONDS, Drain
from proxy.server.connection.handled_request import HandledRequest
from proxy.server.connection.host import ConnectionHost
from proxy.server.connection.origin import Origin
from proxy.server.connection.pauses import (
    BROKER_FULL,
    BY_BROKER,
    BY_CLIENT,
    BY_CONNECTING,
    BY_CONNECTION_RATE,
    BY_LIST,
    BY_QUOTA,
    CONNECTING,
    RESPONSES_UNREAD,
    UNSERVED,
)
from proxy.server.connection.relay_session import RelaySession
from proxy.server.connection.streams.direct import Direct, direct, plain_socket
from proxy.server.connection.streams.side import StreamedSide
from proxy.server.connection.streams.splice import SPLICE
from proxy.server.connection.streams.stream import LEAST_BYTES, SocketStream
from proxy.upstream.addresses import join_address
from proxy.wire.reader import NOTHING


@final
class Connection(BrokerEvents, StreamedSide):
    """The client's side is this protocol itself; the broker's is a BrokerSide.

    Both are an asyncio.Protocol in all but the base class, which would keep mypyc from compiling them to
    classes of its own.
    """

    def __init__(
        self,
        host: ConnectionHost["Connection"],
        node_id: int | None,
        loop: asyncio.AbstractEventLoop,
        admitted: bool = False,
        origin: Origin | None = None,
    ) -> None:
        self.admitted: Final = admitted
        """Whether it has been counted already, before its TLS handshake."""
        self.node_id = node_id
        """The broker behind the port; None for the bootstrap port, until a broker is chosen."""
        self.address = "" if origin is None else origin.address
        """The client's IP address."""
        self._port: native = 0 if origin is None else origin.port
        self.address_stated: Final = origin is not None and origin.stated
        """Whether a PROXY header states the address."""
        self.principal = ""
        """The client's principal when it connected: a login may change it."""
        self.opened_at = loop.time()
        """When the connection was opened, or is served if it is served later."""
        self.closes_unserved = False
        """Whether the connection is over the rate of its address, and ends unserved."""
        self._host: Final = host
        self._loop: Final = loop
        self._broker: Final = BrokerSide(self, loop)
        self.session: Final = RelaySession(self, host, self._broker, loop, node_id is not None)
        """Connects the two sides through the relay."""
        self._direct: Direct | None = None
        """Writes to the client; created when the first large response arrives."""
        self._stream: SocketStream | None = None
        """Created when the first large request arrives that is forwarded while it arrives."""
        self._drain: Drain[Connection] | None = None
        """None before the shutdown."""
        self._tls_reader: TlsReader | None = None
        """The reader of the client's records; None without TLS."""
        self._unserved = NOTHING
        """Bytes that the client has sent before the time at which it is served."""
        self._wait: ConnectionWait | None = None
        """The wait for that time; None if there is none."""
        self._serve_timer: asyncio.TimerHandle | None = None

    # The client's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        client = cast("asyncio.Transport", transport)
        if not self.address:
            peer = client.get_extra_info("peername") or ("?", 0)
            self.address = str(peer[0])
            self._port = peer[1]
        session = self.session
        session.client = client
        tls = self.tls
        session.client_tls = tls is not None
        if isinstance(tls, ServerConnection):
            keep_unread_data(client)
            self._tls_reader = tls.reader
            self._tls_reader.share_turns(
                self._loop, resume=self._read_records, reject=self._reject_records, closing=self._closing
            )
        high = TLS_WRITE_BUFFER_BYTES if session.client_tls else WRITE_BUFFER_BYTES
        client.set_write_buffer_limits(high=high)
        session.relay = self._host.opened(self, self.address)
        if session.relay is None:
            session.over = True
            client.abort()

    @property
    def tls(self) -> ssl.SSLObject | None:
        """The client's TLS session; None without TLS."""
        found: ssl.SSLObject | None = None
        client = self.session.client
        if client is not None:
            found = client.get_extra_info("ssl_object")
        return found

    @property
    def unserved(self) -> bool:
        """Whether the connection still waits for the time at which it is served."""
        return self.session.pauses.has(UNSERVED) and not self.closes_unserved

    def close_at(self, time: float) -> None:
        """Close it then, and read nothing until then; called when the connection is opened."""
        self.closes_unserved = True
        self.serve_at(time)

    def serve_at(self, time: float, bucket: Bucket | None = None) -> None:
        """Do not read from the client until then, or until the bucket's limit allows it; called when the
        connection is opened.
        """
        self._wait = ConnectionWait(time, self._loop.time(), bucket)
        self.opened_at = self.session.heard_at = time
        self.session.pause(UNSERVED, True)
        self._serve_timer = self._loop.call_at(self._wait.wake_at, self._review_wait)

    def _review_wait(self) -> None:
        wait = self._wait
        assert wait is not None, "the timer runs while the connection waits"
        over = wait.review(self._loop.time())
        self.opened_at = self.session.heard_at = wait.until
        if over:
            self._serve()
        else:
            self._serve_timer = self._loop.call_at(wait.wake_at, self._review_wait)

    def _serve(self) -> None:
        self._wait = self._serve_timer = None
        session = self.session
        if self.closes_unserved:
            session.close(CONNECTION_RATE)
        if session.over:
            return
        unserved, self._unserved = self._unserved, NOTHING
        session.pause(UNSERVED, False)
        if unserved or session.client_ended_at > 0.0:
            session.receive_from_client(b"".join(unserved))

    def data_received(self, data: bytes) -> None:
        session = self.session
        if session.pauses.has(UNSERVED) and session.client is not None and not session.over:
            # uvloop starts reading after connection_made(), even if that has paused it.
            if not self.closes_unserved:
                self._unserved = [*self._unserved, data]
            session.client.pause_reading()
        else:
            session.receive_from_client(data)
            if self._stream is not None or len(data) >= LATER_PART_BYTES:
                self._follow_requests()
        if self._tls_reader is not None and session.pauses.any:
            self._tls_reader.keep_end()

    def _follow_requests(self) -> None:
        """Forward the bytes of a large request that wait in the client's socket."""
        stream = self._stream
        if stream is not None:
            stream.follow()
            return
        client = self.session.client
        broker = self._broker.transport
        if client is None or broker is None or self.forwardable() < LEAST_BYTES:
            return
        to_broker = direct(broker)
        descriptor = plain_socket(client)
        if to_broker is not None and descriptor >= 0:
            self._stream = SocketStream(self, client, descriptor, to_broker)
            self._stream.follow()

    def forwardable(self) -> int:
        return self.session.request_forwardable

    def forwarded(self, size: int) -> None:
        self.session.client_forwarded(size)

    def active(self) -> bool:
        return self.session.client_active()

    def _read_records(self) -> None:
        client = self.session.client
        if client is not None and not client.is_closing() and client.is_reading():
            # The event loop then decrypts what it has received.
            client.pause_reading()
            client.resume_reading()

    def _reject_records(self, why: str) -> None:
        client = self.session.client
        self.session.fail(RelayError(CLIENT_PROTOCOL_ERROR, why))
        if client is not None:
            # Otherwise the event loop would wait for the client to end TLS.
            client.abort()

    def _closing(self) -> bool:
        client = self.session.client
        return client is None or client.is_closing()

    def eof_received(self) -> bool:
        """The client sends no more; what it has sent is still answered."""
        session = self.session
        relay = session.relay
        if relay is None or session.over:
            return False
        if self.tls is not None:
            # There is no half of a TLS connection.
            session.give_up(CLIENT_CLOSED, "the client closed")
            return False
        if session.pauses.has(UNSERVED):
            if not self._unserved:
                # The client has sent nothing, and will not: the next one gets its turn.
                session.close(CLIENT_CLOSED)
                return False
            session.client_ended_at = self._loop.time()
            return True
        if relay.status.request_unfinished:
            error = RelayError(CLIENT_PROTOCOL_ERROR, "the client closed in the middle of a request")
            session.fail(error)
            return False
        session.client_ended()
        return not session.over

    def pause_writing(self) -> None:
        self.session.client_full(True)

    def resume_writing(self) -> None:
        self.session.client_full(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self.session.give_up(CLIENT_CLOSED, "the connection broke")
        self.session.client = None
        if self._serve_timer is not None:
            self._serve_timer.cancel()
            self._serve_timer = None
        self._leave()

    # The broker's side

    def broker_connected(self) -> None:
        self.session.broker_connected()
        relay = self.session.relay
        if relay is not None and SPLICE.opened() and not self.session.client_tls and not self._broker.tls:
            relay.stream_requests()

    def broker_sent(self, data: bytes) -> None:
        session = self.session
        session.receive_from_broker(data)
        relay = session.relay
        if relay is None or session.over or session.client_tls or not self._broker.streams(relay):
            return
        if self._direct is None and session.client is not None:
            self._direct = direct(session.client)
        if self._direct is not None:
            self._broker.follow(self._direct)

    def broker_active(self) -> bool:
        return self.session.broker_active()

    def broker_forwardable(self) -> int:
        relay = self.session.relay
        return 0 if relay is None else relay.forwardable

    def broker_forwarded(self, size: int) -> None:
        if self.session.relay is not None:
            self.session.relay.forwarded(size)
        # Spliced bytes are not copied.
        if size >> SPLICED_SHIFT >= BULK_BYTES:
            self.session.broker_took(size >> SPLICED_SHIFT)

    def broker_full(self, full: bool) -> None:
        self.session.broker_full(full)

    def broker_lost(self) -> None:
        relay = self.session.relay
        if relay is not None and relay.status.response_due:
            error = RelayError(BROKER_CLOSED, "the broker closed its connection while a response was due")
            self.session.fail(error)
        else:
            self.session.close(BROKER_CLOSED)
        if relay is not None and self._broker.closed_by_broker:
            relay.broker_closed(self._loop.time())
        self._leave()

    async def reach_broker(self, broker: asyncio.Protocol) -> None:
        """Connect the broker's side, or end the connection with the reason."""
        try:
            await self._host.connect(self, broker)
        except UpstreamUnavailable as error:
            self._broker.failed()
            unreachable = BrokerUnreachable(str(error))
            if not self._reroute() and not self.session.leave_question(unreachable):
                self.session.fail(unreachable)
                if self.session.relay is not None:
                    self.session.relay.broker_closed(self._loop.time())
                self._leave()

    def _reroute(self) -> bool:
        """Start again with another broker, and with its quotas; returns whether there is one."""
        if not self.session.may_reroute:
            return False
        relay = self._host.reroute(self)
        if relay is None:
            return False
        self.session.reroute(relay)
        return True

    def _leave(self) -> None:
        if self.session.client is None and self._broker.gone:
            self._host.left(self)
            # Break the reference cycles, so that everything is freed now, and not by a collection.
            self.session.part()
            self._direct = None
            self._stream = None
            self._tls_reader = None
            self._broker.part()

    # What the listener asks and tells

    @property
    def peer(self) -> str:
        """The client's address with the port, for the log."""
        return join_address(self.address, self._port)

    @property
    def follower(self) -> tuple[int, int] | None:
        """The node id of the follower that the client is, and how many messages its replicas lack."""
        relay = self.session.relay
        return None if relay is None else relay.status.follower

    @property
    def first_request_seen(self) -> bool:
        """Whether the client has sent a whole request."""
        relay = self.session.relay
        return relay is not None and relay.status.first_request_seen

    @property
    def waits_for_broker(self) -> bool:
        """Whether the client cannot be blamed for silence: it is muted, or it has sent whole requests and a
        response is due.

        If the broker takes no more, the client is not read from, and may be gone.
        """
        relay = self.session.relay
        if relay is None or self.session.pauses.has(BROKER_FULL):
            return False
        status = relay.status
        return relay.output.client_muted or (status.response_due and not status.request_unfinished)

    @property
    def pause_reason(self) -> str:
        """Why the client is not read from: one of PAUSE_REASONS, or empty."""
        pauses = self.session.pauses
        relay = self.session.relay
        if pauses.has(UNSERVED):
            return BY_CONNECTION_RATE
        if relay is not None and relay.status.waits_for_turn:
            return BY_LIST
        if relay is not None and relay.status.throttled:
            return BY_QUOTA
        if pauses.has(CONNECTING):
            return BY_CONNECTING
        if pauses.has(BROKER_FULL):
            return BY_BROKER
        return BY_CLIENT if pauses.has(RESPONSES_UNREAD) else ""

    def slow(self, now: float, since: float) -> bool:
        """Whether a shutdown that began at `since` would have to await this connection for long."""
        session = self.session
        relay = session.relay
        if relay is None or session.over:
            return False
        if session.pauses.has(BROKER_FULL | CONNECTING) and now - session.heard_at > SLOW_SECONDS:
            return True
        awaited = relay.status.awaited
        return awaited is not None and (awaited.sent_at < since or now - awaited.sent_at > SLOW_SECONDS)

    def handled(self, request: Intercepted) -> "HandledRequest[Connection]":
        """Return the intercepted request for its handler."""
        return HandledRequest(self.session, request)

    def drain(self, now: float) -> None:
        """Shut the connection down; see Drain.poll()."""
        if self._drain is None:
            self._drain = Drain(self.session)
        self._drain.poll(now)

    def abort(self) -> None:
        """Time is up: end both sides now."""
        self.session.close(DRAIN_TIMEOUT)
        for transport in (self.session.client, self._broker.transport):
            if transport is not None:
                transport.abort()
