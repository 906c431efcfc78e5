"""InFlight: requests of a connection that await their responses, in order, and what is due to the client."""

from typing import Final, final

from proxy.relay.exchange import Exchange
from proxy.relay.traffic import Bytes
from proxy.wire.errors import Malformed
from proxy.wire.reader import NOTHING

MAX_IN_FLIGHT: Final = 1024
"""Requests of one connection that await their answers; a client that pipelines more is read no faster than it
is answered.
"""


@final
class InFlight:
    """Shared by the two directions of a relay. Times are the relay's `now`; 0 is no time."""

    def __init__(self, total: Bytes) -> None:
        """`total` counts all bytes for clients; the proxy's own answers are added to it here."""
        self._total: Final = total
        self.muted_until = 0.0
        """No further request is read before this."""
        self.held_until = 0.0
        """No answer leaves before this: it is for a client that cannot be told to wait, or behind such a one.
        """
        self.passing = False
        """Whether an answer of the broker's is half through: nothing may come between its parts."""
        self.awaiting_response = False
        """Whether an answer has to be there before a further request is read: one of the proxy's own, which
        is being made, or one to a login.
        """
        self.asked: Exchange | None = None
        """The intercepted request for whose sake the proxy has asked the broker something, and awaits it."""
        self._first: Exchange | None = None
        """The exchange whose turn it is; the others follow by `next`, down to the last."""
        self._last: Exchange | None = None
        self._due = 0
        """How many there are."""
        self._to_client = NOTHING
        self._held_back: list[bytes] = []

    @property
    def empty(self) -> bool:
        """Whether no answer is due or half through."""
        return self._first is None and not self.passing and not self._held_back

    @property
    def streams(self) -> bool:
        """Whether the answer whose turn it is may pass on while it comes; see Exchange.streams."""
        return self._first is not None and self._first.streams

    @property
    def full(self) -> bool:
        """Whether so many answers are due that no further request is read before some of them are there."""
        return self._due >= MAX_IN_FLIGHT

    def add(self, exchange: Exchange) -> None:
        """A request has been read."""
        last = self._last
        if last is None:
            self._first = exchange
        else:
            last.next = exchange
        self._last = exchange
        self._due += 1
        if exchange.own:
            self.awaiting_response = exchange.answer is None
            self.send_own()

    def answered(self, correlation_id: int) -> Exchange:
        """The exchange whose answer has come from the broker. Raises Malformed where it is not its turn.

        An answer to what the proxy has asked leaves the exchange in its place, for the proxy's own answer.
        """
        exchange = self._first
        if exchange is None or (exchange.own and exchange is not self.asked):
            raise Malformed(f"an answer (correlation_id {correlation_id}) to no request")
        if exchange is self.asked:
            self.asked = None
        else:
            self._remove(exchange)
        if exchange.correlation_id != correlation_id:
            raise Malformed(
                f"the answer has correlation_id {correlation_id}; "
                f"it is the turn of request {exchange.correlation_id}"
            )
        return exchange

    def _remove(self, first: Exchange) -> None:
        """The first exchange is over."""
        self._first = first.next
        self._due -= 1
        if first.next is None:
            self._last = None

    @property
    def first(self) -> Exchange | None:
        """Whose answer is due next."""
        return self._first

    def responded_bare(self, exchange: Exchange) -> None:
        """The answer to the first exchange has come from the broker without a correlation_id."""
        self._remove(exchange)

    def answer_own(self, exchange: Exchange, answer: bytes) -> None:
        """The proxy's own answer to a request is there: a whole frame."""
        exchange.answer = answer
        self.awaiting_response = False
        self.send_own()

    def send_own(self) -> None:
        """Send the proxy's own answers whose turn it is."""
        exchange = self._first
        while exchange is not None and not self.passing:
            answer = exchange.answer
            if answer is None:
                return
            self._remove(exchange)
            if exchange.held_until > 0.0:
                self.hold(exchange.held_until)
            self._total.bytes_out += len(answer)
            client = exchange.client
            client.traffic.bytes_out += len(answer)
            if client.usage is not None:
                client.usage.count_out(exchange.api_key, len(answer))
            self.send([answer])
            exchange = self._first

    def send(self, pieces: list[bytes]) -> None:
        """Bytes for the client, in their turn; the list is no longer the caller's."""
        if self.held_until > 0.0:
            self._held_back.extend(pieces)
        elif self._to_client:
            self._to_client.extend(pieces)
        else:
            self._to_client = pieces

    def take(self) -> list[bytes]:
        """What may leave for the client now."""
        taken = self._to_client
        self._to_client = NOTHING
        return taken

    def mute(self, until: float) -> None:
        if until > self.muted_until:
            self.muted_until = until

    def hold(self, until: float) -> None:
        if until > self.held_until:
            self.held_until = until

    def release(self) -> None:
        """The wait of what was held back is over."""
        self.held_until = 0.0
        held_back = self._held_back
        self._held_back = []
        self.send(held_back)
