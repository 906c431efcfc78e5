"""Connection: a client's socket, the broker's socket, and the relay between them.

Four steps, the same on both sides: feed the relay, mute or unmute the client, flush what the relay has for
each side, arm its timer. A side is not read from while the other cannot take more, so that memory stays
bounded. The broker is connected when there is something to send to it.
"""

import asyncio
import ssl
from typing import Final, cast, final

from proxy.errors import UpstreamUnavailable
from proxy.relay.close_reasons import (
    BROKER_CLOSED,
    CLIENT_CLOSED,
    CLIENT_PROTOCOL_ERROR,
    CONNECTION_RATE,
    DRAIN_TIMEOUT,
    DRAINED,
    BrokerUnreachable,
    RelayError,
)
from proxy.relay.intercepted import Intercepted
from proxy.relay.output import RelayOutput
from proxy.relay.relay import Relay
from proxy.server.connection.broker_side import TLS_WRITE_BUFFER_BYTES, WRITE_BUFFER_BYTES, BrokerSide
from proxy.server.connection.direct import Direct, direct
from proxy.server.connection.drain import GENTLE_SECONDS, SLOW_SECONDS, Drain
from proxy.server.connection.events import BrokerEvents
from proxy.server.connection.hang_up import hung_up
from proxy.server.connection.host import ConnectionHost
from proxy.server.connection.pauses import (
    BROKER_FULL,
    CLIENT_FULL,
    CONNECTING,
    DELAYED,
    DRAINING,
    MUTED,
    RESPONSES_UNREAD,
    UNSERVED,
    Pauses,
)


@final
class Connection(BrokerEvents):
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
    ) -> None:
        self.admitted: Final = admitted
        """Whether it has been counted already, before its TLS handshake."""
        self.node_id = node_id
        """The broker behind the port; None for the bootstrap port, until a broker is chosen."""
        self.address = ""
        """The client's IP address; `peer` has the port too."""
        self.peer = ""
        self.principal = ""
        """The client's principal when it connected: a login may change it."""
        self.opened_at = self.heard_at = loop.time()
        self._host: Final = host
        self._loop: Final = loop
        self._time: Final = loop.time
        self._client: asyncio.Transport | None = None
        self._direct: Direct | None = None
        self._broker: Final = BrokerSide(self, loop)
        self._relay: Relay | None = None
        self._unserved: list[bytes] = []
        self.closes_unserved = False
        """Whether the connection is over the rate of its address, and ends unserved."""
        self._unrouted: list[bytes] | None = [] if node_id is None else None
        """What the client has sent while another broker can still be chosen for the bootstrap port: nothing
        has reached a broker, and the client has no response. None afterwards.
        """
        self._pauses: Final = Pauses()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._serve_timer: asyncio.TimerHandle | None = None
        self._question: asyncio.Future[bytes] | None = None
        self.client_ended_at = 0.0
        """When the client said that it sends no more; 0.0 if it did not."""
        self._client_full = False
        """Whether the client has left so many responses unread that they pile up here."""
        self._drain: Final = Drain()
        self._over = False

    # The client's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        client = cast("asyncio.Transport", transport)
        peer = client.get_extra_info("peername") or ("?", 0)
        self.address = str(peer[0])
        self.peer = f"{peer[0]}:{peer[1]}"
        self._client = client
        self._direct = direct(client)
        high = WRITE_BUFFER_BYTES if self.tls is None else TLS_WRITE_BUFFER_BYTES
        client.set_write_buffer_limits(high=high)
        self._relay = self._host.opened(self, self.address)
        if self._relay is None:
            self._over = True
            client.abort()

    @property
    def tls(self) -> ssl.SSLObject | None:
        """The client's TLS session; None without TLS."""
        found: ssl.SSLObject | None = None
        if self._client is not None:
            found = self._client.get_extra_info("ssl_object")
        return found

    @property
    def follower(self) -> tuple[int, int] | None:
        """The node id of the follower that the client is, and how many messages its replicas lack."""
        return None if self._relay is None else self._relay.follower

    @property
    def unserved(self) -> bool:
        """Whether the connection still waits for the time at which it is served."""
        return self._pauses.has(UNSERVED) and not self.closes_unserved

    def close_at(self, time: float) -> None:
        """Close it then, and read nothing until then; said when the connection is opened."""
        self.closes_unserved = True
        self.serve_at(time)

    def keep_broker(self) -> None:
        """Never choose another broker: the client wants this one. Said when the connection is opened."""
        self._unrouted = None

    def serve_at(self, time: float) -> None:
        """Leave what the client sends unread until then; said when the connection is opened."""
        self.opened_at = self.heard_at = time
        self._pause(UNSERVED, True)
        self._serve_timer = self._loop.call_at(time, self._serve)

    def _serve(self) -> None:
        self._serve_timer = None
        if self.closes_unserved:
            self.close(CONNECTION_RATE)
            return
        unserved, self._unserved = self._unserved, []
        self._pause(UNSERVED, False)
        if unserved or self.client_ended_at > 0.0:
            self.data_received(b"".join(unserved))

    def data_received(self, data: bytes) -> None:
        relay = self._relay
        if relay is None or self._over:
            return
        if self._pauses.has(UNSERVED) and self._client is not None:
            # uvloop starts reading after connection_made(), whatever was said there.
            if not self.closes_unserved:
                self._unserved.append(data)
            self._client.pause_reading()
            return
        if self._client_full:
            # What the proxy answers itself would pile up without an end.
            self._pause(RESPONSES_UNREAD, True)
        if self._unrouted is not None:
            self._unrouted.append(data)
        now = self._time()
        self.heard_at = now
        try:
            output = relay.receive_from_client(data, now)
        except RelayError as error:
            self._fail_in_call(relay, error)
            return
        self._act_on(relay, output)

    def eof_received(self) -> bool:
        """The client sends no more; what it has sent is still answered."""
        relay = self._relay
        if relay is None or self._over:
            return False
        if self.tls is not None:
            # There is no half of a TLS connection.
            self.give_up(CLIENT_CLOSED, "the client closed")
            return False
        if self._pauses.has(UNSERVED):
            if not self._unserved:
                # The client has sent nothing, and will not: the next one gets its turn.
                self.close(CLIENT_CLOSED)
                return False
            self.client_ended_at = self._time()
            return True
        if relay.request_unfinished:
            self.fail(RelayError(CLIENT_PROTOCOL_ERROR, "the client closed in the middle of a request"))
            return False
        self.client_ended_at = self._time()
        self._finish_if_idle(relay, CLIENT_CLOSED)
        return not self._over

    def pause_writing(self) -> None:
        self._client_full = True
        self._broker.pause(CLIENT_FULL, True)

    def resume_writing(self) -> None:
        self._client_full = False
        self._broker.pause(CLIENT_FULL, False)
        self._pause(RESPONSES_UNREAD, False)

    def connection_lost(self, exc: Exception | None) -> None:
        self.give_up(CLIENT_CLOSED, "the connection broke")
        self._client = None
        self._leave()

    # The broker's side

    def broker_connected(self) -> None:
        self._unrouted = None
        if self._relay is not None:
            self._relay.broker_reached(self._time())
        self._pause(CONNECTING, False)
        self._give_memory_back()

    def broker_sent(self, data: bytes) -> None:
        relay = self._relay
        if relay is None or self._over:
            return
        now = self._time()
        self.heard_at = now
        try:
            output = relay.receive_from_broker(data, now)
        except RelayError as error:
            self._fail_in_call(relay, error)
            return
        self._act_on(relay, output)
        if self._direct is not None and not self._over:
            self._broker.follow(relay, self._direct)

    def broker_active(self) -> bool:
        """Note that the broker has sent something; False if the connection is over."""
        if self._relay is None or self._over:
            return False
        self.heard_at = self._time()
        return True

    def broker_full(self, full: bool) -> None:
        self._pause(BROKER_FULL, full)
        self._give_memory_back()

    def _give_memory_back(self) -> None:
        """Tell the relay when the broker's socket has taken a large request."""
        relay = self._relay
        if relay is not None and relay.output.holds_memory and not self._pauses.has(BROKER_FULL | CONNECTING):
            relay.broker_took_all()

    def broker_lost(self) -> None:
        relay = self._relay
        if relay is not None and relay.response_due:
            self.fail(RelayError(BROKER_CLOSED, "the broker closed it and left a request unanswered"))
        else:
            self.close(BROKER_CLOSED)
        self._leave()

    async def reach_broker(self, broker: asyncio.Protocol) -> None:
        """Connect the broker's side, or end the connection with the reason."""
        try:
            await self._host.connect(self, broker)
        except UpstreamUnavailable as error:
            self._broker.failed()
            unreachable = BrokerUnreachable(str(error))
            if not self._reroute() and not self._leave_question(unreachable):
                self.fail(unreachable)
                self._leave()

    def _leave_question(self, unreachable: BrokerUnreachable) -> bool:
        """Leave the response to whoever asks the broker something; returns whether anybody does."""
        question = self._question
        relay = self._relay
        if self._over or relay is None or question is None or question.done() or not relay.answers_alone:
            return False
        self._pause(CONNECTING, False)
        question.set_exception(unreachable)
        return True

    def _reroute(self) -> bool:
        """Start again with another broker, and with its quotas; returns whether there is one."""
        unrouted = self._unrouted
        if unrouted is None or self._over:
            return False
        relay = self._host.reroute(self)
        if relay is None:
            return False
        if self._relay is not None:
            self._relay.end()
        self._relay = relay
        self._unrouted = []
        self._pause(CONNECTING, False)
        self.data_received(b"".join(unrouted))
        return True

    # Between them

    def _act_on(self, relay: Relay, output: RelayOutput) -> None:
        """Do what a call of the relay asks for."""
        muted = output.client_muted
        if muted != self._pauses.has(MUTED):
            self._pause(MUTED, muted)
        if output.to_broker:
            self._send_to_broker(output.to_broker)
        if output.to_client and self._client is not None:
            self._unrouted = None
            self._client.writelines(output.to_client)
        if output.intercepted:
            self._unrouted = None
            for request in output.intercepted:
                self._host.start_answering(self, request)
        if output.broker_responses:
            self._take_broker_response(output.broker_responses)
        delayed = output.responses_delayed
        if delayed != self._broker.pauses.has(DELAYED):
            # The responses for a client that cannot be told to wait stay in the broker's socket.
            self._broker.pause(DELAYED, delayed)
        due = output.next_timer
        if due != self._due:
            self._arm(due)
        if output.names_wanted:
            self._host.ask_names()
        if output.unknown_brokers:
            self._learn_brokers(relay, output)
        elif self.client_ended_at > 0.0:
            self._finish_if_idle(relay, CLIENT_CLOSED)

    def _learn_brokers(self, relay: Relay, output: RelayOutput) -> None:
        """Have ports bound for brokers, before the responses that name them leave."""
        brokers = output.take_unknown_brokers()
        while brokers:
            for broker in brokers:
                self._host.learn_broker(broker)
            try:
                output = relay.brokers_known(self._time())
            except RelayError as error:
                self._fail_in_call(relay, error)
                return
            # A loop: many responses in a row may each name another broker.
            brokers = output.take_unknown_brokers()
            self._act_on(relay, output)

    def _send_to_broker(self, pieces: list[bytes]) -> None:
        broker = self._broker.transport
        if broker is not None:
            broker.writelines(pieces)
            self._give_memory_back()
        elif self._broker.wait_with(pieces):
            self._pause(CONNECTING, True)
            self._host.start_connecting(self, cast("asyncio.Protocol", self._broker))

    def _take_broker_response(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            if self._question is not None and not self._question.done():
                self._question.set_result(payload)

    async def ask(self, request: Intercepted, frame: bytes) -> bytes:
        """Ask the broker something for an intercepted request; returns its response, header and body.

        One question at a time. Is cancelled when the connection ends, and raises RelayError when it has.
        """
        relay = self._relay
        if relay is None or self._over:
            raise RelayError(CLIENT_CLOSED, "the client is gone")
        self._question = self._loop.create_future()
        self._act_on(relay, relay.ask_broker(request.exchange, frame, self._time()))
        return await self._question

    def answer(
        self, request: Intercepted, frame: bytes, throttle_seconds: float = 0.0, delayed: bool = False
    ) -> None:
        """Answer an intercepted request; see Relay.answer()."""
        relay = self._relay
        if relay is None or self._over:
            return
        try:
            output = relay.answer(request.exchange, frame, self._time(), throttle_seconds, delayed)
        except RelayError as error:
            self._fail_in_call(relay, error)
            return
        self._act_on(relay, output)

    def forward(self, request: Intercepted, frame: bytes) -> None:
        """Forward an intercepted request; see Relay.forward()."""
        relay = self._relay
        if relay is None or self._over:
            return
        try:
            output = relay.forward(request.exchange, frame, self._time())
        except RelayError as error:
            self._fail_in_call(relay, error)
            return
        self._act_on(relay, output)

    def _pause(self, why: int, on: bool) -> None:
        if self._pauses.change(self._client, why, on):
            self.heard_at = self._time()  # silence counts from now on

    def _arm(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due = due
        if due > 0.0:
            self._timer = self._loop.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._due = 0.0
        relay = self._relay
        if relay is None or self._over:
            return
        if relay.waits_for_debt and self._client is not None and hung_up(self._client):
            self.give_up(CLIENT_CLOSED, "the client closed")
            return
        try:
            # The loop's clock may be a little early for its own timers.
            output = relay.handle_timer(max(self._time(), relay.output.next_timer))
        except RelayError as error:
            self._fail_in_call(relay, error)
            return
        self._act_on(relay, output)

    # The end

    def slow(self, now: float, since: float) -> bool:
        """Whether a shutdown that began at `since` would have to await this connection for long."""
        relay = self._relay
        if relay is None or self._over:
            return False
        if self._pauses.has(BROKER_FULL | CONNECTING) and now - self.heard_at > SLOW_SECONDS:
            return True
        awaited = relay.awaited
        return awaited is not None and (awaited.sent_at < since or now - awaited.sent_at > SLOW_SECONDS)

    def drain(self, now: float) -> None:
        """The proxy shuts down: close as soon as nothing is on its way; called every DRAIN_POLL_SECONDS.

        No further request is read, except from a client that sends with acks=0: it is read from until it is
        quiet, or for so many calls; those at which the broker could not take more do not count. Quotas hold.
        """
        relay = self._relay
        if relay is None or self._over:
            return
        drain = self._drain
        drain.called(self._pauses.has(BROKER_FULL | CONNECTING))
        if drain.read_enough or not (relay.sends_unanswered or relay.request_unfinished):
            self._pause(DRAINING, True)
        try:
            output = relay.drain(now)
        except RelayError as error:
            self._fail_in_call(relay, error)
            return
        self._act_on(relay, output)
        done = self._pauses.has(DRAINING) or drain.quiet(now - self.heard_at)
        if done and relay.awaited is None and not self._over:
            self.close(DRAINED)

    @property
    def waits_for_broker(self) -> bool:
        """Whether the client cannot be blamed for silence: it is muted, or a response is due.

        If the broker takes no more, the client is not read from, and may be gone.
        """
        relay = self._relay
        if relay is None or self._pauses.has(BROKER_FULL):
            return False
        return relay.output.client_muted or relay.response_due

    @property
    def first_request_seen(self) -> bool:
        """Whether the client has sent a whole request."""
        return self._relay is not None and self._relay.first_request_seen

    def _finish_if_idle(self, relay: Relay, reason: str) -> None:
        if relay.idle and not self._over:
            self.close(reason)

    def give_up(self, reason: str, what: str) -> None:
        """End the connection of a client that is gone or silent; amid a request, say so in the log."""
        if self._relay is not None and self._relay.request_unfinished:
            self.fail(RelayError(reason, f"{what} in the middle of a request"))
        else:
            self.close(reason)

    def fail(self, error: RelayError) -> None:
        """End the connection, and have it logged why."""
        if self._over:
            return
        self._host.failed(self, error)
        self.close(error.reason)

    def _fail_in_call(self, relay: Relay, error: RelayError) -> None:
        """End the connection because a call of the relay has raised."""
        # Responses that came before the error still leave, as does the one that tells the client of it.
        if self._client is not None:
            self._client.writelines(relay.output.to_client)
        self.fail(error)

    def close(self, reason: str) -> None:
        """End both sides once what has been written to them has left; later calls do nothing."""
        if self._over:
            return
        self._over = True
        self._arm(0.0)
        if self._serve_timer is not None:
            self._serve_timer.cancel()
        if self._question is not None:
            self._question.cancel()
        response_due = False
        if self._relay is not None:
            response_due = self._relay.response_due
            self._relay.end()
        client = self._client
        if client is not None and reason == DRAINED:
            self._close_gently(client)
        elif client is not None:
            client.close()
        self._broker.end(unread=reason == DRAINED and response_due)
        self._host.ended(self, reason)

    def _close_gently(self, client: asyncio.Transport) -> None:
        """Close the client's side without a reset. A reset would take away responses that have not arrived
        yet; it follows if the client has sent requests that are not read.
        """
        if client.is_closing() or not client.can_write_eof():
            client.close()
            return
        client.write_eof()
        client.resume_reading()
        self._loop.call_later(GENTLE_SECONDS, client.close)

    def _leave(self) -> None:
        if self._client is None and self._broker.gone:
            self._host.left(self)
            # What knows each other lets go, so that all of it is freed now, and not by a collection.
            self._relay = None
            self._direct = None
            self._broker.part()

    def abort(self) -> None:
        """Time is up: end both sides now."""
        self.close(DRAIN_TIMEOUT)
        for transport in (self._client, self._broker.transport):
            if transport is not None:
                transport.abort()
