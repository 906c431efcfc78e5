"""Relay: one client connection and its broker connection.

Bytes go in with receive_from_client() and receive_from_broker(). Each call returns the relay's output: what
is to be sent to either side, and when handle_timer() is due. `now` is seconds on one monotonic clock.

Quotas judge a request when it has been read. If its client has to wait, reading ends there (KIP-219's mute):
requests behind it stay unread, and its response, which is not delayed, announces in throttle_time_ms what is
left of the wait. A client whose version has no such field gets the response when the wait is over.
"""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, CLIENT_PROTOCOL_ERROR, RelayError
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.fetch.sessions import SESSION_MASK
from proxy.relay.inflight import InFlight
from proxy.relay.login.authentication import Authentication
from proxy.relay.output import RelayOutput
from proxy.relay.requests import Requests
from proxy.relay.responses import Responses
from proxy.relay.settings import RelaySettings
from proxy.relay.traffic import Traffic
from proxy.wire.addresses import Addresses
from proxy.wire.api_keys import FETCH, JOIN_GROUP, SHARE_FETCH, SYNC_GROUP
from proxy.wire.errors import FrameTooLarge, ProtocolError
from proxy.wire.not_kafka import looks_like

WAITING_APIS: Final = frozenset([FETCH, SHARE_FETCH, JOIN_GROUP, SYNC_GROUP])
"""Requests to which a broker responds when something happens, up to their timeout: records, a rebalance."""


@final
class Relay:
    """Raises RelayError when the connection has to end."""

    def __init__(
        self,
        engine: QuotaEngine,
        addresses: Addresses,
        traffic: Traffic,
        settings: RelaySettings,
        *,
        principal: str,
        client_address: str,
        node_id: int = -1,
        session_mask: int = SESSION_MASK,
    ) -> None:
        """`node_id`: the broker's, under which usage is counted. `session_mask`: by what a client's ids of
        fetch sessions differ from the broker's, if quotas omit partitions; a consumer must not know it.
        """
        names = settings.topic_names
        self._names: Final = names
        self.output: Final = RelayOutput()
        """What the last call has brought about."""
        self._in_flight: Final = InFlight(engine, traffic.total, self.output)
        authentication: Authentication | None = None
        if settings.login is not None:
            authentication = Authentication(settings.login, traffic, self._in_flight, client_address)
        self._authentication: Final = authentication
        self._requests: Final = Requests(
            engine,
            traffic,
            self._in_flight,
            self.output,
            new_client(Identity(principal, "", client_address), b"", traffic, node_id),
            settings,
            node_id=node_id,
            session_mask=session_mask,
            authentication=authentication,
        )
        self._responses: Final = Responses(
            engine,
            traffic,
            self._in_flight,
            self.output,
            addresses=addresses,
            names=names,
            authentication=authentication,
        )

    @property
    def response_due(self) -> bool:
        """Whether the response to a request is not there, or not to its end."""
        return not self._in_flight.empty or self._requests.waiting

    @property
    def waits_for_debt(self) -> bool:
        """Whether Produce requests wait that are dropped if their client hangs up: for a debt to be paid, or
        unread for that of rejected bytes. A client that hangs up takes them for failed. It is not read from
        meanwhile, so the shell has to look for that before it calls handle_timer().
        """
        return self._requests.waits_for_debt

    @property
    def idle(self) -> bool:
        """Whether no response is due, and no part of a request is there."""
        return self._in_flight.empty and not self._requests.unfinished and not self._requests.waiting

    @property
    def request_unfinished(self) -> bool:
        """Whether bytes of a request are there that have not been forwarded."""
        return self._requests.unfinished

    @property
    def follower(self) -> tuple[int, int] | None:
        """The node id of the follower that the client is, and how many messages its replicas lack; None for
        other clients.
        """
        return self._requests.follower

    @property
    def first_request_seen(self) -> bool:
        """Whether the client has sent a whole request."""
        return self._requests.first_request_seen

    # What the two sockets bring

    def receive_from_client(self, data: bytes, now: float) -> RelayOutput:
        """Take the client's next bytes."""
        self.output.clear()
        self._requests.feed(data)
        self._read_requests(now)
        return self._finish()

    def receive_from_broker(self, data: bytes, now: float) -> RelayOutput:
        """Take the broker's next bytes."""
        self.output.clear()
        try:
            self._responses.receive(data, now)
        except ProtocolError as error:
            raise RelayError(BROKER_PROTOCOL_ERROR, str(error)) from error
        return self._responses_read(now)

    def brokers_known(self, now: float) -> RelayOutput:
        """Read on: the shell has put RelayOutput.unknown_brokers into the table of addresses."""
        self.output.clear()
        try:
            self._responses.brokers_known(now)
        except ProtocolError as error:
            raise RelayError(BROKER_PROTOCOL_ERROR, str(error)) from error
        return self._responses_read(now)

    def _responses_read(self, now: float) -> RelayOutput:
        if self._authentication is not None:
            self._take_login(self._authentication)
        if self._requests.awaits_response:
            self._requests.wake(now)
        if self._requests.unfinished:
            # There may have been no room for it among the requests in flight.
            self._read_requests(now)
        return self._finish()

    def _take_login(self, authentication: Authentication) -> None:
        if authentication.rejection:
            raise RelayError(authentication.rejection_reason, authentication.rejection)
        if authentication.done:
            self._requests.sender.rename(authentication.principal)

    @property
    def forwardable(self) -> int:
        """How many of the next bytes from the broker may go straight to the client, as part of a response
        that is forwarded as it is. The shell that sends them calls forwarded(); nothing else for the client
        may wait to be sent.
        """
        return self._responses.forwardable

    def forwarded(self, size: int) -> None:
        """So many bytes, at most `forwardable`, have gone from the broker to the client, or will go next."""
        self._responses.forwarded(size)

    def broker_reached(self, now: float) -> None:
        """The broker is connected: only now the requests so far are on their way."""
        self._responses.broker_reached(now)

    def broker_took_all(self) -> None:
        """No bytes for the broker wait to be sent any longer."""
        self._requests.buffer.give_memory_back()

    # Requests that the proxy answers

    def ask_broker(self, exchange: Exchange, frame: bytes, now: float) -> RelayOutput:
        """Send the broker a whole frame for an intercepted request, on the client's own connection.

        Its correlation_id is the intercepted request's. The response comes in RelayOutput.broker_responses;
        one question at a time, and before answer().
        """
        self.output.clear()
        self._requests.interception.ask(exchange, frame, now)
        return self._finish()

    @property
    def answers_alone(self) -> bool:
        """Whether the only response that is due is the proxy's own, to an intercepted request."""
        first = self._in_flight.first
        return first is not None and first.local and first.next is None

    def answer(
        self,
        exchange: Exchange,
        response: bytes,
        now: float,
        throttle_seconds: float = 0.0,
        delayed: bool = False,
    ) -> RelayOutput:
        """Take the local response to an intercepted request, a whole frame; the client then has to wait.

        `delayed`: the client's version cannot tell it so, and it gets the response after the wait.
        """
        self.output.clear()
        if throttle_seconds > 0.0:
            self._in_flight.mute(now + throttle_seconds)
            if delayed:
                exchange.delayed_until = now + throttle_seconds
        self._in_flight.respond(exchange, response)
        self._read_requests(now)
        return self._finish()

    def forward(self, exchange: Exchange, frame: bytes, now: float) -> RelayOutput:
        """Forward an intercepted request after all, as this whole frame of the same version.

        Only for an API that the relay reads: the broker's response is forwarded as to any other request.
        """
        self.output.clear()
        self._requests.interception.forward(exchange, frame, now)
        self._read_requests(now)
        return self._finish()

    # Time

    def handle_timer(self, now: float) -> RelayOutput:
        """Do what is due by now."""
        self.output.clear()
        in_flight = self._in_flight
        if 0.0 < in_flight.delayed_until <= now:
            in_flight.end_delay()
        if 0.0 < self._requests.wake_at <= now:
            self._requests.wake(now)
            self._read_requests(now)
        if 0.0 < in_flight.muted_until <= now:
            in_flight.end_mute(now)
            self._read_requests(now)
        return self._finish()

    def drain(self, now: float) -> RelayOutput:
        """The proxy shuts down: let no fetch wait, and delay no response any longer.

        A muted client stays muted: what it has sent beyond its quota is not read.
        """
        self.output.clear()
        in_flight = self._in_flight
        self._requests.give_up_waiting(now)
        self._read_requests(now)
        if in_flight.delayed_until > 0.0:
            in_flight.end_delay()
        return self._finish()

    @property
    def awaited(self) -> Exchange | None:
        """The oldest request whose response a shutdown has to await; None for none.

        A request that waits for events, such as a Fetch, is sent again by its client, and loses nothing.
        """
        return self._in_flight.first_but(WAITING_APIS)

    @property
    def sends_unanswered(self) -> bool:
        """Whether the client's last Produce request had acks=0: such a client cannot know what to send
        again.
        """
        return self._requests.sends_unanswered

    def end(self) -> None:
        """The connection is over: what has come of a large frame counts as its client's usage."""
        if self._authentication is not None:
            self._authentication.end()
        self._requests.end()
        self._responses.end()

    def _read_requests(self, now: float) -> None:
        try:
            self._requests.read(now)
        except ProtocolError as error:
            hint = looks_like(error.head) if isinstance(error, FrameTooLarge) else ""
            raise RelayError(CLIENT_PROTOCOL_ERROR, f"{error}; {hint}" if hint else str(error)) from error

    def _finish(self) -> RelayOutput:
        """End a call: complete its output."""
        output = self.output
        in_flight = self._in_flight
        requests = self._requests
        output.names_wanted = self._names.any_wanted
        output.client_muted = not requests.may_read
        delayed_until = in_flight.delayed_until
        output.responses_delayed = delayed_until > 0.0
        due = _earlier(in_flight.muted_until, delayed_until)
        wake_at = requests.wake_at
        output.next_timer = due if wake_at == 0.0 else _earlier(due, wake_at)
        return output


def _earlier(one: float, other: float) -> float:
    """The earlier of two times, of which 0.0 is none."""
    if one == 0.0:
        return other
    return min(one, other) if other > 0.0 else one
