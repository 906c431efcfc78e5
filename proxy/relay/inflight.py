"""InFlight: the requests of a connection that await their responses, in order, and the bytes that may be sent
to the client.
"""

import math
from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.measure.debt import PAID_SECONDS, Debt
from proxy.quota.verdict import Verdict
from proxy.relay.budgets.list_turns import ListTurn
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange
from proxy.relay.output import RelayOutput
from proxy.relay.record_locks import RecordLocks
from proxy.wire.api_keys import FETCH, JOIN_GROUP, SHARE_FETCH, SYNC_GROUP
from proxy.wire.edit import MAX_THROTTLE_MS
from proxy.wire.errors import Malformed
from proxy.wire.frames import Frame
from proxy.wire.reader import NOTHING
from proxy.wire.views import WITHHELD, RequestView, ResponseView

MAX_IN_FLIGHT: Final[native] = 256
"""Requests of one connection that may await their responses. If there are more, the relay reads the client no
faster than its broker responds. A broker processes one at a time, and these keep it busy for milliseconds.
Each costs memory, and time of the garbage collector and at the end of the connection.
"""
FREE_IN_FLIGHT: Final[native] = 8
"""The requests in flight for which a connection takes none of the shared room. Kafka's own clients have at
most five in flight.
"""
SHARED_IN_FLIGHT: Final[native] = 512
"""The shared room: further requests in flight of all connections. A request is up to six objects for the
garbage collector, which takes up to half a microsecond for each.
"""
WAITING_APIS: Final = frozenset([FETCH, SHARE_FETCH, JOIN_GROUP, SYNC_GROUP])
"""Requests to which a broker responds when an event occurs (records, a rebalance), or after their timeout."""
LOCAL_SECONDS: Final = 50e-6
"""The request time that a local response costs, because the relay has no clock: about what Kafka charges for
the smallest requests.
"""
LOCAL_PARTITION_SECONDS: Final = 2e-6
"""The further request time for each partition of the request."""


@final
class InFlightRoom:
    """Room for requests in flight that all connections of a process share."""

    __slots__ = ("taken",)

    def __init__(self) -> None:
        self.taken: native = 0
        """Requests beyond the FREE_IN_FLIGHT of their connection."""


@final
class InFlight:
    """The requests in flight of one relay, whose two directions share it and change it only by its methods.

    Times are the relay's `now`; 0.0 is no time. Other code only reads the attributes without underscore.
    """

    def __init__(
        self, engine: QuotaEngine, traffic: Traffic, output: RelayOutput, room: InFlightRoom | None = None
    ) -> None:
        """`traffic` counts all bytes for clients; this object adds those of local responses. `room`: None if
        the connection shares it with no other.
        """
        self._room: Final = InFlightRoom() if room is None else room
        self._engine: Final = engine
        self._total: Final = traffic.total
        self._throttle_times: Final = traffic.throttle_times
        self._output: Final = output
        self.muted_until = 0.0
        """The relay reads no further request before this time; then end_mute() is due."""
        self._debt: Debt | None = None
        """The longest debt of the connection, as the time until it is paid, if that is after
        `muted_until`.
        """
        self.delayed_until = 0.0
        """No response is sent before this time, because its client's version has no throttle_time_ms, or
        because it follows such a response.
        """
        self._record_locks: RecordLocks | None = None
        self.awaiting_response = False
        """Whether the relay must wait for a response before it reads a further request: a local response that
        is being created, or the response to a login or to `_unconfirmed`.
        """
        self._unconfirmed: Exchange | None = None
        """A Produce request of a user of whom it is not known whether it may write to the topic."""
        self._in_response = False
        """Whether a response of the broker is incomplete: no other bytes may be sent between its parts."""
        self._asked: Exchange | None = None
        """The intercepted request for which the proxy has sent the broker a request."""
        self._first: Exchange | None = None
        """The exchange whose response is due next. The others follow by `next`, up to the last."""
        self._last: Exchange | None = None
        self._count: native = 0
        self._delayed = NOTHING

    @property
    def record_locks(self) -> RecordLocks:
        """The longest wait of a share consumer. Only connections that fetch have it."""
        locks = self._record_locks
        if locks is None:
            locks = self._record_locks = RecordLocks()
        return locks

    @property
    def empty(self) -> bool:
        """Whether no response is outstanding, incomplete or delayed."""
        return self._first is None and not self._in_response and not self._delayed

    @property
    def streams(self) -> bool:
        """Whether the relay may forward the next response while it arrives; see Exchange.streams."""
        return self._first is not None and self._first.streams

    @property
    def count(self) -> int:
        """The number of outstanding responses."""
        return self._count

    @property
    def full(self) -> bool:
        """Whether the relay reads no further request, because too many responses are outstanding. The next
        response to the connection may change that: it has at least FREE_IN_FLIGHT outstanding.
        """
        count = self._count
        return count >= FREE_IN_FLIGHT and (count >= MAX_IN_FLIGHT or self._room.taken >= SHARED_IN_FLIGHT)

    @property
    def last(self) -> Exchange | None:
        """The exchange whose response is due last."""
        return self._last

    @property
    def first(self) -> Exchange | None:
        """The exchange whose response is due next."""
        return self._first

    def has(self, exchange: Exchange) -> bool:
        """Whether the response to this request is outstanding or delayed."""
        if self.delayed_until > 0.0:
            return True
        each = self._first
        while each is not None and each is not exchange:
            each = each.next
        return each is not None

    @property
    def handles(self) -> bool:
        """Whether the proxy works on the request that has been read last, an intercepted one."""
        last = self._last
        return last is not None and last.local and last.local_response is None

    @property
    def awaits_event(self) -> bool:
        """Whether the broker may respond to an outstanding request as late as its client likes."""
        exchange = self._first
        while exchange is not None:
            if exchange.api_key in WAITING_APIS:
                return True
            exchange = exchange.next
        return False

    def first_but(self, api_keys: frozenset[int]) -> Exchange | None:
        """The oldest exchange of an API other than these; None if there is none."""
        exchange = self._first
        while exchange is not None and exchange.api_key in api_keys:
            exchange = exchange.next
        return exchange

    # Requests

    def add(self, exchange: Exchange) -> None:
        """Append a request that has been read."""
        last = self._last
        if last is None:
            self._first = exchange
        else:
            last.next = exchange
        self._last = exchange
        self._count += 1
        if self._count > FREE_IN_FLIGHT:
            self._room.taken += 1
        if exchange.local:
            self.awaiting_response = exchange.local_response is None
            self.send_local()

    def answer(self, exchange: Exchange, request: RequestView | None, partitions: int, now: float) -> None:
        """Append a request that the proxy has answered at once. Charge it, as a broker charges each request
        that it responds to, and mute the client. `request`: None if no quota needs it.
        """
        if request is not None:
            self._charge_fixed(exchange, request, partitions, now)
        self.add(exchange)

    def charge_login(self, request: RequestView | None, now: float) -> None:
        """Charge the message of a login that has been appended last, and mute the client: the client has
        logged in before, and a broker responds to any number of such messages.
        """
        if request is not None and self._last is not None:
            self._charge_fixed(self._last, request, 0, now)

    def _charge_fixed(self, exchange: Exchange, request: RequestView, partitions: int, now: float) -> None:
        view = ResponseView(request.api_version, False, WITHHELD)
        view.service_seconds = LOCAL_SECONDS + partitions * LOCAL_PARTITION_SECONDS
        verdict = self._engine.charge(request, view, exchange.client, now, exchange.throttled_until)
        if verdict.throttle_seconds > 0.0:
            exchange.throttle(now + verdict.throttle_seconds, now)
            self.throttle(verdict, exchange.client, now)
            self.count_throttle(exchange)

    def add_login(self, exchange: Exchange) -> None:
        """Append a message of a login. The relay reads no further request before the response has arrived."""
        self.add(exchange)
        self.awaiting_response = True

    def ask(self, exchange: Exchange) -> None:
        """Expect the broker's response to a request of the proxy, which belongs to an intercepted request."""
        self._asked = exchange

    def await_append(self, exchange: Exchange) -> None:
        """Read no further request before the response to this one, the last: only that tells whether the
        quotas must be charged for the records. A broker works on one request at a time anyway.
        """
        self._unconfirmed = exchange
        self.awaiting_response = True

    def end_with_response(self, turn: ListTurn) -> None:
        """End a turn when the response to the last request arrives."""
        if self._last is not None:
            self._last.list_turn = turn

    # Responses

    def take_response(self, correlation_id: int) -> Exchange:
        """Return the exchange to which the broker has responded. Raises Malformed if it is not its turn.

        If the response is to a request of the proxy, the exchange stays in its place for the local response.
        """
        exchange = self._first
        if exchange is None or (exchange.local and exchange is not self._asked):
            raise Malformed(f"a response (correlation_id {correlation_id}) to no request")
        if exchange is self._asked:
            self._asked = None
        else:
            self._remove(exchange)
            if exchange is self._unconfirmed:
                self._unconfirmed = None
                self.awaiting_response = False
        if exchange.correlation_id != correlation_id:
            raise Malformed(
                f"the response has correlation_id {correlation_id}; "
                f"the next one due is that to request {exchange.correlation_id}"
            )
        return exchange

    def take_late_response(self, correlation_id: int) -> Exchange:
        """Return the exchange as take_response() does, after the end of the connection. Remove the requests
        before it that the proxy would have answered itself.
        """
        exchange = self._first
        while exchange is not None and exchange.local and exchange is not self._asked:
            self._remove(exchange)
            exchange = self._first
        return self.take_response(correlation_id)

    def take_login_response(self) -> None:
        """Continue to read, because the response to a message of a login has arrived."""
        self.awaiting_response = False

    def take_bare_response(self, exchange: Exchange) -> None:
        """Remove the first exchange, whose response has arrived without a correlation_id."""
        self._remove(exchange)

    def begin_response(self) -> None:
        """Note that a part of a response has arrived; local responses wait for its end."""
        self._in_response = True

    def end_response(self) -> None:
        """Note that the last part of a response has arrived."""
        self._in_response = False

    def _remove(self, first: Exchange) -> None:
        self._first = first.next
        if self._count > FREE_IN_FLIGHT:
            self._room.taken -= 1
        self._count -= 1
        if first.next is None:
            self._last = None
        if first.list_turn is not None:
            first.list_turn.end()

    def leave_lists(self) -> None:
        """Note that the connection of the lists in flight is over."""
        each = self._first
        while each is not None:
            if each.list_turn is not None:
                each.list_turn.leave()
            each = each.next

    def end(self) -> None:
        """Give the room back: no response is taken any more."""
        if self._count > FREE_IN_FLIGHT:
            self._room.taken -= self._count - FREE_IN_FLIGHT
        self._count = 0

    def respond(self, exchange: Exchange, response: bytes) -> None:
        """Take the local response to an intercepted request, a whole frame."""
        exchange.local_response = response
        self.awaiting_response = False
        self.send_local()

    def forward(self, exchange: Exchange) -> None:
        """Expect the broker's response to an intercepted request, which is forwarded after all."""
        exchange.local = False
        self.awaiting_response = False

    def send_local(self) -> None:
        """Send the local responses whose turn it is."""
        exchange = self._first
        while exchange is not None and not self._in_response:
            response = exchange.local_response
            if response is None:
                return
            self._remove(exchange)
            self.delay(exchange.delayed_until)
            self._total.bytes_out += len(response)
            client = exchange.client
            client.traffic.bytes_out += len(response)
            if client.usage is not None:
                client.usage.count_out(exchange.api_key, len(response))
            self.send([response])
            exchange = self._first

    def send(self, pieces: list[bytes]) -> None:
        """Send bytes to the client in their turn. The caller must not use the list again."""
        if self.delayed_until > 0.0:
            self._delay_bytes(pieces)
        else:
            self._output.send_to_client(pieces)

    def send_frame(self, frame: Frame) -> None:
        """Send a frame of the broker to the client in its turn, unchanged."""
        if self.delayed_until > 0.0:
            self._delay_bytes(frame.pieces)
        else:
            self._output.forward_to_client(frame)

    def _delay_bytes(self, pieces: list[bytes]) -> None:
        if self._delayed:
            self._delayed.extend(pieces)
        else:
            self._delayed = list(pieces)

    # Throttling

    def mute(self, until: float) -> None:
        """Read no further request before this time."""
        if until > self.muted_until:
            self.muted_until = until

    def throttle(self, verdict: Verdict, who: Identity, now: float) -> None:
        """Read no further request before a verdict's wait is over.

        If a wait is longer than max_throttle_seconds, it is reviewed each time that this many seconds have
        passed, so that a limit that is raised or removed soon ends the mute.
        """
        until = now + verdict.throttle_seconds
        review_at = now + self._engine.max_throttle_seconds
        bucket = verdict.bucket
        if bucket is None or until <= review_at:
            self.mute(until)
            return
        debt = self._debt
        if debt is None or until > debt.until:
            self._debt = Debt(bucket, who, until)
        self.mute(review_at)

    def count_throttle(self, exchange: Exchange) -> None:
        """Count for how long a request makes its client wait, if it does, before its response leaves."""
        if exchange.throttled_seconds > 0.0:
            self._throttle_times.note(exchange.api_key, exchange.throttled_seconds)
            exchange.throttled_seconds = 0.0

    def end_mute(self, now: float) -> None:
        """Read again, unless the connection still has a debt."""
        debt = self._debt
        until = now if debt is None else self._engine.review(debt, now)
        if until > now + PAID_SECONDS:
            self.muted_until = min(until, now + self._engine.max_throttle_seconds)
        else:
            self.unmute()

    def unmute(self) -> None:
        """Read again, whatever the debt."""
        self.muted_until = 0.0
        self._debt = None

    def announced(self, until: float, now: float) -> int:
        """The throttle_time_ms of a wait: at most max_throttle_seconds."""
        seconds = min(until - now, self._engine.max_throttle_seconds)
        return min(math.ceil(seconds * 1000.0), MAX_THROTTLE_MS) if seconds > 0.0 else 0

    def delayed(self, until: float, now: float) -> float:
        """The time at which to send a response whose version has no throttle_time_ms: the end of the wait
        that would be announced.
        """
        return min(until, now + self._engine.max_throttle_seconds)

    def delay(self, until: float) -> None:
        """Send no response before this time; 0.0: no delay."""
        if until > self.delayed_until:
            self.delayed_until = until

    def end_delay(self) -> None:
        """Send the delayed responses."""
        self.delayed_until = 0.0
        delayed = self._delayed
        self._delayed = NOTHING
        self.send(delayed)
