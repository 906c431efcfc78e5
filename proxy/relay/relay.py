"""Relay: one client connection and its broker connection.

Bytes enter by receive_from_client() and receive_from_broker(). Each call returns the relay's output: the
bytes for either side, and the time at which handle_timer() is due. `now` is seconds on one monotonic clock.

Quotas judge a request when it has been read. If its client must wait, the relay reads no later requests
(KIP-219's mute). The response is not delayed; its throttle_time_ms announces the rest of the wait. If the
client's version has no such field, the client gets the response when the wait is over.
"""

from collections.abc import Callable
from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.verdict import ALLOW, Verdict
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, CLIENT_PROTOCOL_ERROR, RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.fetch.sessions import SESSION_MASK
from proxy.relay.inflight import InFlight
from proxy.relay.login.authentication import Authentication
from proxy.relay.output import RelayOutput
from proxy.relay.requests.requests import Requests
from proxy.relay.responses.late_responses import LateResponses
from proxy.relay.responses.responses import Responses
from proxy.relay.settings import RelaySettings
from proxy.relay.status import RelayStatus
from proxy.wire.addresses import Addresses
from proxy.wire.api_keys import PRODUCE
from proxy.wire.errors import FrameTooLarge, ProtocolError
from proxy.wire.not_kafka import looks_like
from proxy.wire.spare_items import SpareItems


@final
class Relay:
    """The relay of one connection. Its methods raise RelayError if the connection must end."""

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
        """`node_id`: the broker's node id, under which usage is counted.

        `session_mask`: if quotas omit partitions, the bits in which a client's fetch session ids differ from
        the broker's; a consumer must not know them.
        """
        names = settings.topic_names
        spare_items = SpareItems(settings.spare_items)
        self._engine: Final = engine
        self._names: Final = names
        self._late: LateResponses | None = None
        """After end(), if requests are in flight whose responses the quotas need."""
        self.output: Final = RelayOutput()
        """The output of the last call."""
        self._proxy_times: Final = traffic.proxy_times
        self._in_flight: Final = InFlight(engine, traffic, self.output, settings.in_flight_room)
        errors = settings.broker_errors(traffic, node_id)
        authentication: Authentication | None = None
        if settings.login is not None:
            authentication = Authentication(settings.login, traffic, self._in_flight, client_address, errors)
        self._authentication: Final = authentication
        self._requests: Final = Requests(
            engine=engine,
            traffic=traffic,
            in_flight=self._in_flight,
            output=self.output,
            client=new_client(Identity(principal, "", client_address), b"", traffic, node_id),
            settings=settings,
            spare_items=spare_items,
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
            settings=settings,
            errors=errors,
            authentication=authentication,
            spare_items=spare_items,
        )
        self._clock: Final = settings.service_clock

    @property
    def status(self) -> RelayStatus:
        """What the relay says about its connection. Made for each use: idle connections stay small."""
        return RelayStatus(self._requests, self._in_flight)

    # Input from the two sockets

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
        self._responses_read(now)
        return self._finish()

    def brokers_known(self, now: float) -> RelayOutput:
        """Continue to read, because the shell has added RelayOutput.unknown_brokers to the table of
        addresses.
        """
        self.output.clear()
        try:
            self._responses.brokers_known(now)
        except ProtocolError as error:
            raise RelayError(BROKER_PROTOCOL_ERROR, str(error)) from error
        self._responses_read(now)
        return self._finish()

    def _resume_responses(self, now: float) -> None:
        try:
            self._responses.resume(now)
        except ProtocolError as error:
            raise RelayError(BROKER_PROTOCOL_ERROR, str(error)) from error
        self._responses_read(now)

    def _responses_read(self, now: float) -> None:
        """Do what responses that have been read make possible."""
        if self._authentication is not None:
            self._take_login(self._authentication)
        if self._requests.admission.awaits_response:
            self._wake(now)
        if self._requests.unfinished:
            # A request may have waited because too many were in flight.
            self._read_requests(now)

    def _take_login(self, authentication: Authentication) -> None:
        if authentication.rejection:
            raise RelayError(authentication.rejection_reason, authentication.rejection)
        if authentication.done:
            self._requests.sender.rename(authentication.principal)

    @property
    def forwardable(self) -> int:
        """The number of following bytes of the broker that may go directly to the client, as part of a
        response that is forwarded unchanged. The shell that sends them calls forwarded(). No other bytes for
        the client may wait to be sent.
        """
        return self._responses.forwardable

    def forwarded(self, size: int) -> None:
        """Note that bytes, at most `forwardable`, have gone directly from the broker to the client, or will
        go next.
        """
        self._responses.forwarded(size)

    @property
    def request_forwardable(self) -> int:
        """The number of following bytes of the client that may go directly to the broker, as part of a
        request that is forwarded unchanged. The shell that sends them calls request_forwarded(). No other
        bytes for the broker may wait to be sent.
        """
        return self._requests.forwardable

    def request_forwarded(self, size: int) -> None:
        """Note that bytes, at most `request_forwardable`, have gone directly from the client to the broker,
        or will go next.
        """
        self._requests.forwarded(size)

    def stream_requests(self) -> None:
        """Forward Produce requests while they arrive, where this changes nothing for their clients, because
        the shell can forward their bytes past the relay.
        """
        self._requests.stream()

    def broker_reached(self, now: float) -> None:
        """Note that the broker is connected: only from here on are the earlier requests on their way."""
        self._responses.broker_reached(now)

    def broker_took_all(self) -> None:
        """Note that all bytes for the broker have been sent."""
        self._requests.buffer.give_memory_back()

    # Time at the broker

    @property
    def charges_time(self) -> bool:
        """Whether any quota charges the time that brokers work on requests: then the shell calls note_event()
        before each call with `now`.
        """
        return self._engine.charges_time

    def note_event(self, event: float) -> None:
        """Note the time of the next call's event, by a finer clock than that of `now`."""
        self._clock.event = event

    # Time in the proxy, which the shell measures for some of the requests

    def forwarded_last(self, now: float) -> Exchange | None:
        """Return the last request that the call at `now` has forwarded; None if there is none."""
        last = self._in_flight.last
        return last if last is not None and last.sent_at == self._clock.at(now) and not last.local else None

    def is_next(self, exchange: Exchange) -> bool:
        """Whether the response to this request is due next."""
        return self._in_flight.first is exchange

    def note_proxy_seconds(self, exchange: Exchange, seconds: float) -> None:
        """Count how long a request and its response were in the proxy."""
        self._proxy_times.note(exchange.api_key, seconds)

    # Requests that the proxy answers

    def ask_broker(self, exchange: Exchange, frame: bytes, now: float) -> RelayOutput:
        """Send the broker a whole frame for an intercepted request, on the client's own connection.

        Its correlation_id is the intercepted request's. The response is in RelayOutput.broker_responses. Send
        one frame at a time, before answer().
        """
        self.output.clear()
        self._requests.interception.ask(exchange, frame, now)
        return self._finish()

    def answer(
        self,
        exchange: Exchange,
        response: bytes,
        now: float,
        throttle: Verdict = ALLOW,
        delay_seconds: float = 0.0,
    ) -> RelayOutput:
        """Take the local response to an intercepted request, a whole frame, and mute the client for the wait.

        `delay_seconds`: for how long the response waits, because its version has no throttle_time_ms.
        """
        self.output.clear()
        if throttle.throttle_seconds > 0.0:
            exchange.throttle(now + throttle.throttle_seconds, now)
            self._in_flight.throttle(throttle, exchange.client, now)
        if delay_seconds > 0.0:
            exchange.delayed_until = now + delay_seconds
        self._in_flight.count_throttle(exchange)
        self._in_flight.respond(exchange, self._responses.charges.announce_local(exchange, response, now))
        self._requests.admission.end_buffered()
        self._read_requests(now)
        return self._finish()

    def owes(self, exchange: Exchange) -> bool:
        """Whether the response to an intercepted request waits for its turn."""
        return self._in_flight.has(exchange)

    def charge_work(self, exchange: Exchange, seconds: float, now: float) -> None:
        """Charge the CPU time of the proxy's own work on an intercepted request; call it before answer() or
        forward().
        """
        self._responses.charges.charge_work(exchange, seconds, now)

    def forward(self, exchange: Exchange, frame: bytes, now: float) -> RelayOutput:
        """Forward an intercepted request after all, as this whole frame of the same version.

        Use it only for an API that the relay reads. The broker's response is forwarded like any other.
        """
        self.output.clear()
        self._requests.interception.forward(exchange, frame, now)
        self._requests.admission.end_buffered()
        self._read_requests(now)
        return self._finish()

    # Time

    def handle_timer(self, now: float) -> RelayOutput:
        """Do everything that is due."""
        self.output.clear()
        in_flight = self._in_flight
        if 0.0 < in_flight.delayed_until <= now:
            in_flight.end_delay()
        if 0.0 < self._responses.resume_at <= now:
            self._resume_responses(now)
        if 0.0 < self._requests.wake_at <= now:
            self._wake(now)
            self._read_requests(now)
        if 0.0 < in_flight.muted_until <= now:
            in_flight.end_mute(now)
            self._read_requests(now)
        return self._finish()

    def call_at_turn(self, wake: Callable[[], None]) -> None:
        """Have a function called when it may be the turn of a list that waits (RelayStatus.waits_for_turn).
        Then call take_turn().
        """
        self._requests.call_at_turn(wake)

    def take_turn(self, now: float) -> RelayOutput:
        """Forward the list that waits, if it is its turn."""
        self.output.clear()
        try:
            self._requests.take_turn(now)
        except ProtocolError as error:
            raise RelayError(CLIENT_PROTOCOL_ERROR, str(error)) from error
        return self._finish()

    def drain(self, now: float) -> RelayOutput:
        """End all waits of fetches and all delays of responses, because the proxy shuts down.

        A muted client stays muted: the relay does not read the requests that it has sent beyond its quota.
        """
        self.output.clear()
        in_flight = self._in_flight
        self._requests.admission.give_up_waiting(now)
        self._read_requests(now)
        if in_flight.delayed_until > 0.0:
            in_flight.end_delay()
        return self._finish()

    def end(self) -> None:
        """End the connection: count the part of a large frame that has arrived as its client's usage, and
        give back what the connection has reserved. Responses that the quotas still need go to receive_late().
        """
        if self._authentication is not None:
            self._authentication.end()
        self._requests.end()
        self._responses.end()
        self._in_flight.leave_lists()
        who = self._requests.sender.client
        by_time = self._engine.limits_time(who)
        if self._late is None and (by_time or self._engine.limits_topics(who)):
            self._late = self._responses.late(by_time)
        if self._late is None:
            self._in_flight.end()

    def broker_closed(self, now: float) -> None:
        """Take back what the Produce requests without a response have charged by topic: the broker has closed
        the connection instead of executing them. Anybody can send a broker requests that it does not execute,
        without a login or without an end of their fields. Call it after end().
        """
        if not self._engine.limits_topics(self._requests.sender.client):
            return
        exchange = self._in_flight.first
        while exchange is not None:
            request = exchange.request
            if exchange.api_key == PRODUCE and exchange.sent_at > 0.0 and request is not None:
                self._requests.admission.give_back(exchange, request, now)
            exchange = exchange.next

    def part(self) -> None:
        """Note that both sides are closed."""
        self._in_flight.end()

    @property
    def awaits_late(self) -> bool:
        """Whether the broker's responses are still of use after end()."""
        return self._late is not None and self._late.awaited

    def receive_late(self, data: bytes, now: float) -> bool:
        """Take the broker's next bytes after end(): the quotas take back what the broker has not appended,
        and charge the time of each request.

        Return whether bytes remain to be read. Then call again with no bytes after PAUSE_SECONDS, so that
        other connections have their turn; the first such call is due after end().
        """
        return self._late is not None and self._late.receive(data, now)

    def _read_requests(self, now: float) -> None:
        try:
            self._requests.read(now)
        except ProtocolError as error:
            hint = looks_like(error.head) if isinstance(error, FrameTooLarge) else ""
            raise RelayError(CLIENT_PROTOCOL_ERROR, f"{error}; {hint}" if hint else str(error)) from error

    def _wake(self, now: float) -> None:
        try:
            self._requests.wake(now)
        except ProtocolError as error:
            raise RelayError(CLIENT_PROTOCOL_ERROR, str(error)) from error

    def _finish(self) -> RelayOutput:
        """End a call: complete its output."""
        output = self.output
        in_flight = self._in_flight
        requests = self._requests
        names = self._names
        # TopicNames.any_wanted, without a call that goes through the interpreter.
        output.names_wanted = names.all_wanted or len(names.wanted) > 0
        output.client_muted = not requests.may_read
        delayed_until = in_flight.delayed_until
        due = _earlier(in_flight.muted_until, delayed_until)
        resume_at = self._responses.resume_at
        output.broker_paused = delayed_until > 0.0 or resume_at > 0.0
        if resume_at > 0.0:
            due = _earlier(due, resume_at)
        wake_at = requests.wake_at
        output.next_timer = due if wake_at == 0.0 else _earlier(due, wake_at)
        return output


def _earlier(one: float, other: float) -> float:
    """The earlier of two times. 0.0 is no time."""
    if one == 0.0:
        return other
    return min(one, other) if other > 0.0 else one
