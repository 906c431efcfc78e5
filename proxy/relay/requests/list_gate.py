"""ListGate: the lists of one connection wait here for their turn, before they are read.

A fetch that has waited for its quotas waits for another turn, after it has been read; the first has ended.
"""

from collections.abc import Callable
from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.identity import Identity, client_key
from proxy.relay.budgets.list_turns import LONGEST_SECONDS, ListTurn, ListTurns, work_seconds
from proxy.relay.inflight import WAITING_APIS, InFlight


@final
class ListGate:
    """The gate of one connection to a broker."""

    __slots__ = ("_in_flight", "_next", "_node_id", "_turns", "_waiting", "asks_at")

    def __init__(self, turns: ListTurns, in_flight: InFlight, node_id: int) -> None:
        self._turns: Final = turns
        self._in_flight: Final = in_flight
        self._node_id: Final = node_id
        self._waiting: ListTurn | None = None
        """The turn for which a list waits."""
        self._next: ListTurn | None = None
        """The turn of the request that is being read, or buffered."""
        self.asks_at = 0.0
        """When the list that waits asks again."""

    @property
    def waiting(self) -> bool:
        """Whether a list waits."""
        return self._waiting is not None

    def wait_seconds(self, api_key: int, size: native, who: Identity, now: float) -> float:
        """The seconds after which to ask again whether a list of a client may be read; 0.0: it may be now."""
        turn = self._waiting
        if turn is None:
            turn = self._waiting = self._turns.join((self._node_id, client_key(who)), size, now)
        longest = work_seconds(size) if api_key in WAITING_APIS else LONGEST_SECONDS
        wait = turn.ask(longest, now)
        if wait > 0.0:
            self.asks_at = now + wait
        else:
            self._waiting = None
            self._next = turn
        return wait

    def call(self, wake: Callable[[], None]) -> None:
        """Have a function called when it may be the turn of the list that waits."""
        if self._waiting is not None:
            self._waiting.wake = wake

    def give_up(self) -> None:
        """Leave the line, because the connection waits for something else, too. The list joins it again."""
        if self._waiting is not None:
            self._waiting.end()
            self._waiting = None

    def read(self, before: native, waits: bool) -> None:
        """Note that a large request has been read or forwarded, which may not be a list. `before`: the
        requests in flight until then. `waits`: it waits for request time, and its turn ends after a time.
        """
        turn = self._next
        if turn is None:
            return
        self._next = None
        if self._in_flight.count > before:
            self._in_flight.end_with_response(turn)
        elif not waits:
            turn.end()  # the proxy has answered it, or it is a fetch that waits for its quotas

    def end(self) -> None:
        """End the wait, because the connection is over."""
        self.give_up()
        if self._next is not None:
            self._next.leave()
