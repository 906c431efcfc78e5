"""Turns: the order of answers on one connection, what is due to the client, and until when the client has to
wait.
"""

from typing import Final, final

from proxy.relay.exchange import Exchange
from proxy.relay.traffic import Bytes
from proxy.wire.errors import Malformed

MAX_IN_FLIGHT: Final = 1024
"""Requests of one connection that await their answers; a client that pipelines more is read no faster than it
is answered.
"""


@final
class Turns:
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
        self.awaiting_own = False
        """Whether an answer of the proxy's own is being made; until it is there, no further request is read.
        """
        self.asked: Exchange | None = None
        """The intercepted request for whose sake the proxy has asked the broker something, and awaits it."""
        self._exchanges: Final[list[Exchange]] = []
        """A list, and not a deque: mypyc knows lists, and few requests are in flight on a connection."""
        self._to_client: list[bytes] = []
        self._held_back: list[bytes] = []

    @property
    def empty(self) -> bool:
        """Whether no answer is due or half through."""
        return not self._exchanges and not self.passing and not self._held_back

    @property
    def full(self) -> bool:
        """Whether so many answers are due that no further request is read before some of them are there."""
        return len(self._exchanges) >= MAX_IN_FLIGHT

    def add(self, exchange: Exchange) -> None:
        """A request has been read."""
        self._exchanges.append(exchange)
        if exchange.own:
            self.awaiting_own = exchange.answer is None
            self.send_own()

    def answered(self, correlation_id: int) -> Exchange:
        """The exchange whose answer has come from the broker. Raises Malformed where it is not its turn.

        An answer to what the proxy has asked leaves the exchange in its place, for the proxy's own answer.
        """
        if not self._exchanges or (self._exchanges[0].own and self._exchanges[0] is not self.asked):
            raise Malformed(f"an answer (correlation_id {correlation_id}) to no request")
        exchange = self._exchanges[0]
        if exchange is self.asked:
            self.asked = None
        else:
            self._exchanges.pop(0)
        if exchange.correlation_id != correlation_id:
            raise Malformed(
                f"the answer has correlation_id {correlation_id}; "
                f"it is the turn of request {exchange.correlation_id}"
            )
        return exchange

    def answer_own(self, exchange: Exchange, answer: bytes) -> None:
        """The proxy's own answer to a request is there: a whole frame."""
        exchange.answer = answer
        self.awaiting_own = False
        self.send_own()

    def send_own(self) -> None:
        """Send the proxy's own answers whose turn it is."""
        while self._exchanges and not self.passing:
            exchange = self._exchanges[0]
            answer = exchange.answer
            if answer is None:
                return
            self._exchanges.pop(0)
            if exchange.held_until > 0.0:
                self.hold(exchange.held_until)
            self._total.bytes_out += len(answer)
            exchange.client.traffic.bytes_out += len(answer)
            self.send([answer])

    def send(self, pieces: list[bytes]) -> None:
        """Bytes for the client, in their turn."""
        if self.held_until > 0.0:
            self._held_back.extend(pieces)
        else:
            self._to_client.extend(pieces)

    def take(self) -> list[bytes]:
        """What may leave for the client now."""
        taken = self._to_client
        if taken:
            self._to_client = []
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
        self._to_client.extend(self._held_back)
        self._held_back = []
