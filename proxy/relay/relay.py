"""Relay: one client connection and its broker connection.

Bytes go in with receive_from_client() and receive_from_broker(), come out with take_to_client() and
take_to_broker(), and next_timer() says when handle_timer() is due. `now` is seconds on one monotonic clock.

A request is judged when it has been read. If its client has to wait, reading ends there (KIP-219's mute):
requests behind it stay unread, and its answer, which is not held up, announces in throttle_time_ms what is
left of the wait. A client whose version has no such field gets the answer when the wait is over.
"""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, CLIENT_PROTOCOL_ERROR, RelayError
from proxy.relay.exchange import Exchange
from proxy.relay.inflight import InFlight
from proxy.relay.intercepted import Intercepted
from proxy.relay.login.authentication import Authentication, Login
from proxy.relay.requests import Requests
from proxy.relay.responses import Responses
from proxy.relay.traffic import Traffic
from proxy.wire.addresses import Addresses
from proxy.wire.errors import FrameTooLarge, ProtocolError
from proxy.wire.not_kafka import looks_like
from proxy.wire.registry import WITHOUT_INTERCEPTED, ApiTable
from proxy.wire.topic_names import TopicNames

NO_INTERCEPTED_APIS: Final[frozenset[int]] = frozenset()


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
        intercepted_api_keys: frozenset[int] = NO_INTERCEPTED_APIS,
        topic_names: TopicNames | None = None,
        between_brokers: bool = False,
        node_id: int = -1,
        login: Login | None = None,
        apis: ApiTable = WITHOUT_INTERCEPTED,
    ) -> None:
        """`intercepted_api_keys`: the APIs whose requests are not for the broker; see take_intercepted().

        `topic_names`: None where nobody knows any. `between_brokers`: the client is a broker too. Its
        fetches are a follower's; no version is rejected. `node_id`: the broker's, under which usage is
        counted. `login`: how clients are named by their logins; None: they are not. `apis`: the APIs that
        are read, and those that limit what ApiVersions offers.
        """
        who = Identity(principal, "", client_address)
        names = TopicNames() if topic_names is None else topic_names
        self._in_flight: Final = InFlight(traffic.total)
        self._requests: Final = Requests(
            engine,
            traffic,
            self._in_flight,
            who,
            max_frame_bytes,
            intercepted_api_keys,
            names,
            between_brokers,
            node_id,
            apis,
        )
        self._responses: Final = Responses(engine, addresses, traffic, self._in_flight, names)
        self._authentication: Authentication | None = None
        if login is not None:
            self._authentication = Authentication(login, traffic, self._in_flight, client_address)
            self._requests.authentication = self._authentication
            self._responses.authentication = self._authentication

    @property
    def client_muted(self) -> bool:
        """Whether nothing more may be read from the client now; a frame that is half through goes on."""
        return not self._requests.may_read

    @property
    def response_due(self) -> bool:
        """Whether a request is not answered yet, or not to its end."""
        return not self._in_flight.empty or self._requests.waiting

    @property
    def idle(self) -> bool:
        """Whether no answer is due or half through, and no part of a request is there."""
        return self._in_flight.empty and not self._requests.unfinished and not self._requests.waiting

    @property
    def request_unfinished(self) -> bool:
        """Whether bytes of a request are there, and not yet all of them on their way to the broker."""
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

    def receive_from_client(self, data: bytes, now: float) -> None:
        self._requests.feed(data)
        self._read_requests(now)

    def receive_from_broker(self, data: bytes, now: float) -> None:
        try:
            self._responses.receive(data, now)
        except ProtocolError as error:
            raise RelayError(BROKER_PROTOCOL_ERROR, str(error)) from error
        authentication = self._authentication
        if authentication is not None:
            if authentication.rejection:
                raise RelayError(authentication.rejection_reason, authentication.rejection)
            if authentication.done:
                self._requests.rename(authentication.principal)
        if self._requests.unfinished:
            # There may have been no room for it among the requests in flight.
            self._read_requests(now)

    @property
    def forwardable(self) -> int:
        """How many of the next bytes from the broker may go straight to the client, as a part of an answer
        that is passed on as it is. Whoever does that tells forwarded(); nothing of take_to_client() may wait.
        """
        return self._responses.forwardable

    def forwarded(self, size: int) -> None:
        """So many bytes, at most `forwardable`, have gone from the broker to the client, or will go next."""
        self._responses.forwarded(size)

    def broker_reached(self, now: float) -> None:
        """The broker is connected: what has been handed on before is only now on its way."""
        self._responses.broker_reached(now)

    @property
    def holds_responses(self) -> bool:
        """Whether no answer may leave for the client now: those of the broker's had better wait there."""
        return self._in_flight.delayed_until > 0.0

    def take_to_client(self) -> list[bytes]:
        return self._in_flight.take()

    def take_to_broker(self) -> list[bytes]:
        return self._requests.take()

    def take_intercepted(self) -> list[Intercepted]:
        """Requests that the proxy answers; each wants one answer(). Until then no further request is read."""
        return self._requests.take_intercepted()

    def ask_broker(self, exchange: Exchange, frame: bytes, now: float) -> None:
        """Send the broker a whole frame for the sake of an intercepted request, on the client's own
        connection.

        Its correlation_id is the intercepted request's. The answer comes with take_broker_responses(); one
        question at a time, and before answer().
        """
        self._requests.ask(exchange, frame, now)

    def take_broker_responses(self) -> list[bytes]:
        """What the broker answered to ask_broker(): header and body, without the length."""
        return self._responses.take_collected()

    def answer(
        self, exchange: Exchange, answer: bytes, now: float, throttle_seconds: float = 0.0, hold: bool = False
    ) -> None:
        """Give the answer to an intercepted request: a whole frame. The client then has to wait.

        `hold`: it cannot be told so, and gets the answer after the wait.
        """
        if throttle_seconds > 0.0:
            self._in_flight.mute(now + throttle_seconds)
            if hold:
                exchange.delayed_until = now + throttle_seconds
        self._in_flight.respond(exchange, answer)
        self._read_requests(now)

    def next_timer(self) -> float:
        """When handle_timer() is due; 0 for never."""
        muted = self._in_flight.muted_until
        held = self._in_flight.delayed_until
        due = min(muted, held) if muted > 0.0 and held > 0.0 else max(muted, held)
        wake_at = self._requests.wake_at
        return min(due, wake_at) if due > 0.0 and wake_at > 0.0 else max(due, wake_at)

    def handle_timer(self, now: float) -> None:
        in_flight = self._in_flight
        if 0.0 < in_flight.delayed_until <= now:
            in_flight.end_delay()
        if 0.0 < self._requests.wake_at <= now:
            self._requests.wake(now)
            self._read_requests(now)
        if 0.0 < in_flight.muted_until <= now:
            in_flight.unmute()
            self._read_requests(now)

    def drain(self, now: float) -> None:
        """The proxy shuts down: what has been read goes to the broker, and no answer waits any longer."""
        in_flight = self._in_flight
        self._requests.give_up_waiting(now)
        self._read_requests(now)
        while in_flight.muted_until > 0.0:
            in_flight.unmute()
            self._requests.give_up_waiting(now)
            self._read_requests(now)
        if in_flight.delayed_until > 0.0:
            in_flight.end_delay()

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
