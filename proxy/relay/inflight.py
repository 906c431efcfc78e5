"""InFlight: the requests of a connection that await their responses, in order, and what may leave for the
client.
"""

import math
from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.measure.debt import Debt
from proxy.quota.verdict import Verdict
from proxy.relay.exchange import Exchange
from proxy.relay.output import RelayOutput
from proxy.relay.traffic import Bytes
from proxy.wire.edit import MAX_THROTTLE_MS
from proxy.wire.errors import Malformed

MAX_IN_FLIGHT: Final = 1024
"""Requests of one connection that await their responses. Each costs memory, and a client may pipeline without
an end: one that pipelines more is read no faster than its broker responds.
"""
PAID_SECONDS: Final = 1e-6
"""A debt that is paid within this time is paid: doubles do not tell it from none."""


@final
class InFlight:
    """Shared by both directions of a relay, which change it by its methods alone.

    Times are the relay's `now`; 0.0 is no time. Others only read the attributes without underscore.
    """

    def __init__(self, engine: QuotaEngine, total: Bytes, output: RelayOutput) -> None:
        """`total` counts all bytes for clients; local responses are added to it here."""
        self._engine: Final = engine
        self._total: Final = total
        self._output: Final = output
        self.muted_until = 0.0
        """No further request is read before this time; then end_mute() is due."""
        self._debt: Debt | None = None
        """What the connection owes beyond `muted_until`: the longest of its debts."""
        self.delayed_until = 0.0
        """No response leaves before this time: its client's version has no throttle_time_ms, or it stands
        behind such a response.
        """
        self.awaiting_response = False
        """Whether a response has to be there before a further request is read: a local one that is being
        made, or the response to a login.
        """
        self._in_response = False
        """Whether a response of the broker is only partly there: nothing may come between its parts."""
        self._asked: Exchange | None = None
        """The intercepted request for which the proxy has asked the broker something."""
        self._first: Exchange | None = None
        """The exchange whose response is due next; the others follow by `next`, down to the last."""
        self._last: Exchange | None = None
        self._count = 0
        self._delayed: list[bytes] = []

    @property
    def empty(self) -> bool:
        """Whether no response is due, partly there or delayed."""
        return self._first is None and not self._in_response and not self._delayed

    @property
    def streams(self) -> bool:
        """Whether the next response may be forwarded while it arrives; see Exchange.streams."""
        return self._first is not None and self._first.streams

    @property
    def count(self) -> int:
        """How many responses are due."""
        return self._count

    @property
    def full(self) -> bool:
        """Whether so many responses are due that no further request is read."""
        return self._count >= MAX_IN_FLIGHT

    @property
    def first(self) -> Exchange | None:
        """The exchange whose response is due next."""
        return self._first

    def first_but(self, api_keys: frozenset[int]) -> Exchange | None:
        """The oldest exchange of another API than these; None for none."""
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
        if exchange.local:
            self.awaiting_response = exchange.local_response is None
            self.send_local()

    def add_login(self, exchange: Exchange) -> None:
        """Append a message of a login; no further request is read before its response is."""
        self.add(exchange)
        self.awaiting_response = True

    def ask(self, exchange: Exchange) -> None:
        """Expect the broker's response to what the proxy asks for an intercepted request."""
        self._asked = exchange

    # Responses

    def take_response(self, correlation_id: int) -> Exchange:
        """Return the exchange to which the broker has responded. Raises Malformed if it is not its turn.

        A response to what the proxy has asked leaves the exchange in its place, for the local response.
        """
        exchange = self._first
        if exchange is None or (exchange.local and exchange is not self._asked):
            raise Malformed(f"a response (correlation_id {correlation_id}) to no request")
        if exchange is self._asked:
            self._asked = None
        else:
            self._remove(exchange)
        if exchange.correlation_id != correlation_id:
            raise Malformed(
                f"the response has correlation_id {correlation_id}; "
                f"the next one due is that to request {exchange.correlation_id}"
            )
        return exchange

    def take_login_response(self) -> None:
        """Read on: the response to a login's message is there."""
        self.awaiting_response = False

    def take_bare_response(self, exchange: Exchange) -> None:
        """Remove the first exchange: its response has come without a correlation_id."""
        self._remove(exchange)

    def begin_response(self) -> None:
        """A part of a response is there; local responses wait for its end."""
        self._in_response = True

    def end_response(self) -> None:
        """The last part of a response is there."""
        self._in_response = False

    def _remove(self, first: Exchange) -> None:
        self._first = first.next
        self._count -= 1
        if first.next is None:
            self._last = None

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
        """Send bytes to the client in their turn; the list is no longer the caller's."""
        if self.delayed_until > 0.0:
            self._delayed.extend(pieces)
        else:
            self._output.send_to_client(pieces)

    # Throttling

    def mute(self, until: float) -> None:
        """Read no further request before this time."""
        if until > self.muted_until:
            self.muted_until = until

    def throttle(self, verdict: Verdict, who: Identity, now: float) -> None:
        """Read no further request before a verdict's wait is over.

        A wait longer than max_throttle_seconds is reviewed each time that so much of it is over, so that a
        limit that is raised or removed soon frees the connection.
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

    def end_mute(self, now: float) -> None:
        """Read on, unless the connection still owes something."""
        debt = self._debt
        until = now if debt is None else self._engine.review(debt, now)
        if until > now + PAID_SECONDS:
            self.muted_until = min(until, now + self._engine.max_throttle_seconds)
        else:
            self.unmute()

    def unmute(self) -> None:
        """Read on, whatever is owed."""
        self.muted_until = 0.0
        self._debt = None

    def announced(self, until: float, now: float) -> int:
        """The throttle_time_ms of a wait, of which max_throttle_seconds is announced at most."""
        seconds = min(until - now, self._engine.max_throttle_seconds)
        return min(math.ceil(seconds * 1000.0), MAX_THROTTLE_MS) if seconds > 0.0 else 0

    def delayed(self, until: float, now: float) -> float:
        """When a response leaves whose version has no throttle_time_ms: as late as a wait that is announced
        would end.
        """
        return min(until, now + self._engine.max_throttle_seconds)

    def delay(self, until: float) -> None:
        """Send no response before this time; 0.0 delays none."""
        if until > self.delayed_until:
            self.delayed_until = until

    def end_delay(self) -> None:
        """Send the delayed responses."""
        self.delayed_until = 0.0
        delayed = self._delayed
        self._delayed = []
        self.send(delayed)
