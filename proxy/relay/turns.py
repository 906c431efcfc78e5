"""Turns: the order of answers on one connection, what is due to the client, and until when the client has to
wait.
"""

from typing import Final, final

from proxy.relay.exchange import Exchange
from proxy.wire.errors import Malformed


@final
class Turns:
    """Shared by the two directions of a relay. Times are the relay's `now`; 0 is no time."""

    def __init__(self) -> None:
        self.muted_until = 0.0
        """No further request is read before this."""
        self.held_until = 0.0
        """No answer leaves before this: it is for a client that cannot be told to wait, or behind such a one.
        """
        self.awaiting_own = False
        """Whether an answer of the proxy's own is being made; until it is there, no further request is read.
        """
        self._exchanges: Final[list[Exchange]] = []
        """A list, and not a deque: mypyc knows lists, and few requests are in flight on a connection."""
        self._to_client: list[bytes] = []
        self._held_back: list[bytes] = []

    @property
    def empty(self) -> bool:
        """Whether no answer is due."""
        return not self._exchanges and not self._held_back

    def add(self, exchange: Exchange) -> None:
        """A request has been read."""
        self._exchanges.append(exchange)
        if exchange.own:
            self.awaiting_own = exchange.answer is None
            self.send_own()

    def answered(self, correlation_id: int) -> Exchange:
        """The exchange whose answer has come from the broker. Raises Malformed where it is not its turn."""
        if not self._exchanges or self._exchanges[0].own:
            raise Malformed(f"an answer (correlation_id {correlation_id}) to no request")
        exchange = self._exchanges.pop(0)
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
        while self._exchanges:
            exchange = self._exchanges[0]
            answer = exchange.answer
            if answer is None:
                return
            self._exchanges.pop(0)
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
