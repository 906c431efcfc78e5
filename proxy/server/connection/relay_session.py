"""RelaySession: drives the relay of a connection, from the first bytes to the end of both sides.

After each call of the relay, the session mutes or unmutes the client, writes what the relay has for each
side, and arms the relay's timer. A side is not read from while the other cannot take more, so that memory
stays bounded. The broker is connected when there is something to send to it.
"""

import asyncio
from typing import Final, Generic, TypeVar, cast, final

from proxy.relay.budgets.read_turns import PAUSE_SECONDS
from proxy.relay.close_reasons import CLIENT_CLOSED, DRAINED, BrokerUnreachable, RelayError
from proxy.relay.exchange import Exchange
from proxy.relay.outgoing import Outgoing
from proxy.relay.output import RelayOutput
from proxy.relay.relay import Relay
from proxy.server.connection.broker.question import BrokerQuestion
from proxy.server.connection.broker.side import BrokerSide
from proxy.server.connection.bulk_reads import BULK_BYTES, SPLICED_SHIFT, BulkReader, bulk_reads
from proxy.server.connection.gentle_close import close_gently
from proxy.server.connection.hang_up import hung_up
from proxy.server.connection.host import ConnectionHost
from proxy.server.connection.loop_clock import loop_clock
from proxy.server.connection.measured_reads import MeasuredReads, event_at
from proxy.server.connection.pauses import (
    BROKER_FULL,
    CLIENT_FULL,
    CONNECTING,
    MUTED,
    RESPONSES_UNREAD,
    UNREAD,
    Pauses,
)
from proxy.server.connection.sending import send

LATE_SECONDS: Final = 1.0
"""A timer that is later than this shows that the process was suspended."""
AFTER_LATE_SECONDS: Final = 0.02
"""Such a timer waits this much longer. Other processes have used this one's parts of the limits, and it first
has to learn that it must not use them now (see Sharing.wake).
"""
C = TypeVar("C")
"""The connection; a parameter, so that this file needs not import it."""


@final
class RelaySession(Generic[C]):
    """Connects the relay with the client's and the broker's socket: it feeds bytes and the time to the relay,
    and acts on the relay's output.
    """

    __deletable__ = ("_connection",)

    def __init__(
        self,
        connection: C,
        host: ConnectionHost[C],
        broker: BrokerSide,
        loop: asyncio.AbstractEventLoop,
        routed: bool,
    ) -> None:
        """`connection` is what the host knows the session by. `routed`: the port belongs to one broker."""
        self.client: asyncio.Transport | None = None
        """None before the client's side is connected, and after it has been lost."""
        self.client_tls = False
        """Whether the client's side encrypts what is written to it."""
        self.relay: Relay | None = None
        """None before the connection is opened, and after both sides have been closed."""
        self.over = False
        """Whether the connection has ended; its sockets may still have data to send."""
        self.pauses: Final = Pauses()
        """Why the client is not read from."""
        self._bulk_reads: Final = bulk_reads(loop)
        self._client_bulk: BulkReader | None = None
        self._broker_bulk: BulkReader | None = None
        """None before the first read that counts."""
        self.heard_at = loop.time()
        """When bytes last came from either side, or the client was last read again after a pause."""
        self.client_ended_at = 0.0
        """When the client said that it sends no more; 0.0 if it did not."""
        self.time: Final = loop_clock(loop)
        """The clock of the relay and its quotas."""
        self.question: BrokerQuestion | None = None
        """What the proxy asks the broker for intercepted requests; None before the first question."""
        self._connection = connection
        self._host: Final = host
        self._broker: Final = broker
        self._loop: Final = loop
        self._unrouted: list[bytes] | None = None if routed else []
        """What the client has sent while another broker can still be chosen for the bootstrap port: nothing
        has reached a broker, and the client has no response. None afterwards.
        """
        self._measured_reads: Final = MeasuredReads()
        self._due = 0.0
        """When the timer fires; 0.0 for never."""
        self._timer: asyncio.TimerHandle | None = None
        self._client_full = False
        """Whether the client's socket takes no more for now, so that responses wait in the proxy."""

    def event_time(self, relay: Relay) -> float:
        """Return the `now` for a call of the relay that follows directly. If the relay needs it, it gets the
        time by a finer clock, too.
        """
        now = self.time()
        if relay.charges_time:
            relay.note_event(event_at(now))
        return now

    # The client's side

    def receive_from_client(self, data: bytes) -> None:
        relay = self.relay
        if relay is None or self.over:
            return
        if self._client_full:
            # Otherwise local responses would fill the memory.
            self.pause(RESPONSES_UNREAD, True)
        if self._unrouted is not None:
            self._unrouted.append(data)
        now = self.event_time(relay)
        self.heard_at = now
        began = self._measured_reads.began(now)
        try:
            output = relay.receive_from_client(data, now)
        except RelayError as error:
            self.fail_in_call(relay, error)
            return
        self.act_on(relay, output)
        if len(data) >= BULK_BYTES and not self.over:
            self._client_took(relay, len(data))
        if began > 0.0 and self._broker.transport is not None:
            self._measured_reads.forwarded(relay.forwarded_last(now), began)

    @property
    def request_forwardable(self) -> int:
        """The number of the client's following bytes that may go to the broker past the relay."""
        relay = self.relay
        if relay is None or self.over or self._unrouted is not None:
            return 0
        return relay.request_forwardable

    def client_forwarded(self, size: int) -> None:
        """Note that `size` of these bytes have gone to the broker."""
        relay = self.relay
        if relay is None:
            return
        relay.request_forwarded(size)
        # Spliced bytes are not copied.
        if size >> SPLICED_SHIFT >= BULK_BYTES:
            self._client_took(relay, size >> SPLICED_SHIFT)

    def client_active(self) -> bool:
        """Note that the client has sent something; False if the connection is over."""
        if self.relay is None or self.over:
            return False
        self.heard_at = self.time()
        return True

    def _client_took(self, relay: Relay, size: int) -> None:
        """Note that at least BULK_BYTES have been read from the client at once."""
        bulk = self._client_bulk
        if bulk is None:
            bulk = self._client_bulk = BulkReader(self.pauses)
        bulk.transport = self.client
        self._bulk_reads.took(bulk, size, relay.status.client_key)

    def client_ended(self) -> None:
        """The client sends no more; what it has sent is still answered."""
        self.client_ended_at = self.time()
        if self.relay is not None:
            self._finish_if_idle(self.relay, CLIENT_CLOSED)

    def client_full(self, full: bool) -> None:
        """Whether the client's socket takes no more for now."""
        self._client_full = full
        self._broker.pause(CLIENT_FULL, full)
        if not full:
            self.pause(RESPONSES_UNREAD, False)

    def keeps_response(self, exchange: Exchange) -> bool:
        """Whether the local response to a request is still in the memory of the proxy."""
        if self.client is None:
            return False
        return self._client_full or (self.relay is not None and not self.over and self.relay.owes(exchange))

    def pause(self, why: int, on: bool) -> None:
        """Add or remove a reason for not reading from the client."""
        if self.pauses.change(self.client, why, on):
            self.heard_at = self.time()  # silence counts from now on

    # The broker's side

    def broker_connected(self) -> None:
        self._unrouted = None
        if self.relay is not None:
            self.relay.broker_reached(self.event_time(self.relay))
        self.pause(CONNECTING, False)
        self._give_memory_back()

    def receive_from_broker(self, data: bytes) -> None:
        relay = self.relay
        if relay is None:
            return
        now = self.event_time(relay)
        if self.over:
            self._read_late(relay, data)
            return
        self.heard_at = now
        measured = self._measured_reads.pending
        began = 0.0
        if measured is not None and relay.is_next(measured):
            began = event_at(now)
        try:
            output = relay.receive_from_broker(data, now)
        except RelayError as error:
            self.fail_in_call(relay, error)
            return
        self.act_on(relay, output)
        if len(data) >= BULK_BYTES:
            self.broker_took(len(data))
        if began > 0.0 and measured is not None and not relay.is_next(measured):
            relay.note_proxy_seconds(measured, self._measured_reads.responded(began))

    def broker_took(self, size: int) -> None:
        """Note that at least BULK_BYTES have been read from the broker at once."""
        relay = self.relay
        if relay is not None and not self.over:
            bulk = self._broker_bulk
            if bulk is None:
                bulk = self._broker_bulk = BulkReader(self._broker.pauses)
            bulk.transport = self._broker.transport
            self._bulk_reads.took(bulk, size, relay.status.client_key)

    def _read_late(self, relay: Relay, data: bytes) -> None:
        """Take what the broker sends after the end of the connection; see Relay.receive_late()."""
        if relay.receive_late(data, self.event_time(relay)):
            self._loop.call_later(PAUSE_SECONDS, self._read_late, relay, b"")
        self._broker.await_late(relay.awaits_late)

    def broker_active(self) -> bool:
        """Note that the broker has sent something; False if the connection is over."""
        if self.relay is None or self.over:
            return False
        self.heard_at = self.time()
        return True

    def broker_full(self, full: bool) -> None:
        """Whether the broker's socket takes no more for now."""
        self.pause(BROKER_FULL, full)
        self._give_memory_back()

    def _give_memory_back(self) -> None:
        """Tell the relay when the broker's socket has taken a large request."""
        relay = self.relay
        if relay is not None and relay.output.holds_memory and not self.pauses.has(BROKER_FULL | CONNECTING):
            relay.broker_took_all()

    def keep_broker(self) -> None:
        """Never choose another broker, because the client has chosen this one. Called at the start."""
        self._unrouted = None

    @property
    def may_reroute(self) -> bool:
        """Whether another broker can still be chosen."""
        return self._unrouted is not None and not self.over

    def reroute(self, relay: Relay) -> None:
        """Start again with the relay of another broker, and with its quotas; only if `may_reroute`."""
        unrouted = self._unrouted or []
        if self.relay is not None:
            self.relay.end()
            self.relay.part()
        self.relay = relay
        self._unrouted = []
        self.pause(CONNECTING, False)
        self.receive_from_client(b"".join(unrouted))

    def leave_question(self, unreachable: BrokerUnreachable) -> bool:
        """Give the response to the pending question to the broker; return whether there is one."""
        relay = self.relay
        question = self.question
        if (
            self.over
            or relay is None
            or question is None
            or not question.open
            or not relay.status.answers_alone
        ):
            return False
        self.pause(CONNECTING, False)
        question.fail(unreachable)
        return True

    # Between them

    def act_on(self, relay: Relay, output: RelayOutput) -> None:
        """Do what a call of the relay asks for. Each call of the relay is followed by this."""
        muted = output.client_muted
        if muted != self.pauses.has(MUTED):
            self.pause(MUTED, muted)
        # A connection that is idle after this call keeps no bytes: a read brings up to 256 KiB.
        for_broker = output.for_broker
        if for_broker.any:
            self._send_to_broker(for_broker)
            for_broker.clear()
        for_client = output.for_client
        if for_client.any and self.client is not None:
            self._unrouted = None
            send(self.client, for_client, self.client_tls)
            for_client.clear()
        if output.unusual:
            self._take_requests(output)
        paused = output.broker_paused
        if paused != self._broker.pauses.has(UNREAD):
            # Further responses stay in the broker's socket.
            self._broker.pause(UNREAD, paused)
        due = output.next_timer
        if due != self._due:
            self._arm(due)
        if output.names_wanted:
            self._host.ask_names()
        if output.unusual and output.unknown_brokers:
            self._learn_brokers(relay, output)
        elif self.client_ended_at > 0.0:
            self._finish_if_idle(relay, CLIENT_CLOSED)

    def _take_requests(self, output: RelayOutput) -> None:
        """Start to answer intercepted requests, and take the broker's responses to those of the proxy."""
        if output.intercepted:
            self._unrouted = None
            for request in output.intercepted:
                self._host.start_answering(self._connection, request)
        if output.broker_responses and self.question is not None:
            self.question.answer(output.broker_responses)

    def _learn_brokers(self, relay: Relay, output: RelayOutput) -> None:
        """Have ports bound for brokers, before the responses that name them leave."""
        brokers = output.take_unknown_brokers()
        while brokers:
            for broker in brokers:
                self._host.learn_broker(broker)
            try:
                output = relay.brokers_known(self.event_time(relay))
            except RelayError as error:
                self.fail_in_call(relay, error)
                return
            # A loop: many responses in a row may each name another broker.
            brokers = output.take_unknown_brokers()
            self.act_on(relay, output)

    def _send_to_broker(self, outgoing: Outgoing) -> None:
        broker = self._broker.transport
        if broker is not None:
            send(broker, outgoing, self._broker.tls)
            self._give_memory_back()
        elif self._broker.wait_with(outgoing.pieces):
            self.pause(CONNECTING, True)
            self._host.start_connecting(self._connection, cast("asyncio.Protocol", self._broker))

    def _arm(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due = due
        if due > 0.0:
            self._timer = self._loop.call_at(due, self._on_timer)
            if self.relay is not None and self.relay.status.waits_for_turn:
                self.relay.call_at_turn(self._on_turn)

    def _on_timer(self) -> None:
        self._timer = None
        if self.time() - self._due > LATE_SECONDS:
            self._arm(self.time() + AFTER_LATE_SECONDS)
            return
        self._due = 0.0
        relay = self.relay
        if relay is None or self.over:
            return
        waits = relay.status.waits_for_debt or relay.status.waits_for_turn
        if waits and self.client is not None and hung_up(self.client):
            self.give_up(CLIENT_CLOSED, "the client closed")
            return
        try:
            # The loop's clock may be a little early for its own timers.
            output = relay.handle_timer(max(self.event_time(relay), relay.output.next_timer))
        except RelayError as error:
            self.fail_in_call(relay, error)
            return
        self.act_on(relay, output)

    def _on_turn(self) -> None:
        relay = self.relay
        if relay is None or self.over or not relay.status.waits_for_turn:
            return
        if self.client is not None and hung_up(self.client):
            self.give_up(CLIENT_CLOSED, "the client closed")
            return
        try:
            output = relay.take_turn(self.event_time(relay))
        except RelayError as error:
            self.fail_in_call(relay, error)
            return
        self.act_on(relay, output)

    # The end

    def _finish_if_idle(self, relay: Relay, reason: str) -> None:
        if relay.status.idle and not self.over:
            self.close(reason)

    def give_up(self, reason: str, what: str) -> None:
        """End the connection of a client that is gone or silent; amid a request, say so in the log."""
        if self.relay is not None and self.relay.status.request_unfinished:
            self.fail(RelayError(reason, f"{what} in the middle of a request"))
        else:
            self.close(reason)

    def fail(self, error: RelayError) -> None:
        """End the connection, and have the error logged."""
        if self.over:
            return
        self._host.failed(self._connection, error)
        self.close(error.reason)

    def fail_in_call(self, relay: Relay, error: RelayError) -> None:
        """End the connection because a call of the relay has raised."""
        # The quotas have charged the requests before the error. A broker, too, would execute them.
        output = relay.output
        if output.for_broker.any:
            self._send_to_broker(output.for_broker)
        # Responses that came before the error still leave, as does the one that tells the client of it.
        if output.for_client.any and self.client is not None:
            send(self.client, output.for_client, self.client_tls)
        self.fail(error)

    def close(self, reason: str) -> None:
        """End both sides once what has been written to them has left; later calls do nothing."""
        if self.over:
            return
        self.over = True
        for bulk in (self._client_bulk, self._broker_bulk):
            if bulk is not None:
                self._bulk_reads.end(bulk)
        self._arm(0.0)
        if self.question is not None:
            self.question.cancel()
        response_due = False
        if self.relay is not None:
            response_due = self.relay.status.response_due
            self.relay.end()
            self._read_late(self.relay, b"")
        client = self.client
        if client is not None and reason == DRAINED:
            close_gently(client, self._loop)
        elif client is not None:
            client.close()
        self._broker.end(unread=reason == DRAINED and response_due)
        self._host.ended(self._connection, reason)

    def part(self) -> None:
        """Drop the references to the relay and the connection: both sides are closed."""
        if self.relay is not None:
            self.relay.part()
        self.relay = None
        self._measured_reads.pending = None
        del self._connection
