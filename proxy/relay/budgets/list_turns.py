"""ListTurns: how many bytes of lists each client has in flight at each broker.

A broker works on each entry of a request that lists partitions, topics or groups. Ten such requests on ten
connections, or a hundred smaller ones, take all request handler threads of a broker, and the requests of
other clients wait for a tenth of a second. So the lists of a client go to a broker in turn: while those in
flight have more than a number of bytes, the next one waits in the proxy, and its connection is not read. One
may always go. A client is a principal, or the address of those without one, with all its connections. If it
owes request time for its lists, the next one waits until this is paid (ListDebts).

A turn ends with the response, or after a time: a broker may respond to a Fetch as late as its client likes,
and a client may not read its responses. So a list never waits for an event, and lists cannot wait for each
other in a circle. If a connection ends, the broker still works on its list, so its turn goes on for as long
as that takes.
"""

from collections.abc import Callable
from typing import Final, final

from mypy_extensions import i64 as native

from proxy.relay.budgets.list_debts import LineKey, ListDebts

LIST_BYTES: Final[native] = 4 << 10
"""The size of the smallest request that counts as a list: it has a hundred entries."""
LONGEST_SECONDS: Final = 1.0
"""The longest turn. A broker responds to a list of 512 KiB within a tenth of this time."""
LINES_AT_MOST: Final = 1000
"""If there are more lines, those whose turns are over are looked for."""

WORK_SECONDS: Final = 0.02
WORK_SECONDS_PER_BYTE: Final = 1e-6


def work_seconds(size: native) -> float:
    """For how long a broker with much other work works on a list, at most."""
    return WORK_SECONDS + float(size) * WORK_SECONDS_PER_BYTE


@final
class ListTurn:
    """The turn of one list."""

    __slots__ = (
        "_key",
        "_turns",
        "began",
        "in_flight",
        "line",
        "size",
        "ticket",
        "until",
        "wake",
        "woken",
    )

    def __init__(self, turns: "ListTurns", line: "Line", size: native) -> None:
        self._turns: Final = turns
        self._key: Final = line.key
        self.line: Line | None = line
        """None when the turn is over."""
        self.size: Final[native] = size
        turns.last_ticket += 1
        self.ticket: Final[native] = turns.last_ticket
        """Its place in the line."""
        self.in_flight = False
        """Whether the turn has begun."""
        self.began = 0.0
        self.until = 0.0
        """When the turn is over, if there is no response before."""
        self.wake: Callable[[], None] | None = None
        """Called when it may be the list's turn."""
        self.woken = False
        """Whether it has been called since ask()."""
        line.waiting[self.ticket] = self

    def ask(self, longest: float, now: float) -> float:
        """Begin the turn if it is due. Return 0.0 if it has begun, else after how many seconds to ask again,
        unless `wake` is called before. The turn ends after `longest` seconds, or with end().
        """
        line = self.line
        assert line is not None, "it has not ended"
        self.woken = False
        wait = line.wait_seconds(self, self._turns.most_bytes, now)
        if wait <= 0.0:
            # A client that has closed its connection is noticed when its list asks again.
            wait = min(self._turns.debts.wait_seconds(self._key, now), LONGEST_SECONDS)
        if wait > 0.0:
            return wait
        del line.waiting[self.ticket]
        line.in_flight[self.ticket] = self
        line.size += self.size
        self.in_flight = True
        self.began = now
        self.until = now + longest
        self._turns.wake_first(line)
        return 0.0

    def end(self) -> None:
        """End the turn, or the wait for it."""
        line = self.line
        if line is None:
            return
        self.line = None
        self.wake = None
        if self.in_flight:
            del line.in_flight[self.ticket]
            line.size -= self.size
        else:
            del line.waiting[self.ticket]
        self._turns.wake_first(line)

    def owe(self, seconds: float, most: float, now: float) -> None:
        """Note the request time that the list has used, as ListDebts.add() does. The turn may be over."""
        self._turns.debts.add(self._key, seconds, most, now)

    def leave(self) -> None:
        """Note that the connection is over. The broker still works on a list in flight, and a client must not
        get further turns by closing its connections.
        """
        if self.in_flight:
            self.until = min(self.until, self.began + work_seconds(self.size))
        else:
            self.end()


@final
class Line:
    """The lists of one client at one broker."""

    __slots__ = ("in_flight", "key", "size", "waiting")

    def __init__(self, key: LineKey) -> None:
        self.key: Final = key
        self.in_flight: Final[dict[int, ListTurn]] = {}
        """The lists whose turn it is, by ticket."""
        self.size: native = 0
        """Their bytes."""
        self.waiting: Final[dict[int, ListTurn]] = {}
        """The others, in the order in which they have come."""

    @property
    def first(self) -> ListTurn | None:
        """The list whose turn is next."""
        for turn in self.waiting.values():
            return turn
        return None

    def wait_seconds(self, turn: ListTurn, most_bytes: native, now: float) -> float:
        """After how many seconds a list that waits should ask again; 0.0 if it is its turn."""
        first = self.first is turn
        if first and self._has_room(turn.size, most_bytes):
            return 0.0
        self.expire(now)
        if not first:
            return LONGEST_SECONDS
        if self._has_room(turn.size, most_bytes):
            return 0.0
        return min([each.until for each in self.in_flight.values()]) - now

    def _has_room(self, size: native, most_bytes: native) -> bool:
        return not self.in_flight or self.size + size <= most_bytes

    def expire(self, now: float) -> None:
        """End the turns that have taken too long."""
        for over in [turn for turn in self.in_flight.values() if turn.until <= now]:
            over.end()


@final
class ListTurns:
    """The turns of all connections of a process."""

    __slots__ = ("_clean_at", "_lines", "_next_turn", "debts", "last_ticket", "most_bytes")

    def __init__(
        self, most_bytes: native, next_turn: Callable[[Callable[[], None]], object] | None = None
    ) -> None:
        """`most_bytes`: the bytes of lists that a client may have in flight at a broker, or it has one list.
        `next_turn`: calls a function in the next turn of the event loop (call_soon).
        """
        self.most_bytes: Final[native] = most_bytes
        self.last_ticket: native = 0
        self.debts: Final = ListDebts()
        self._next_turn: Final = next_turn
        self._lines: Final[dict[LineKey, Line]] = {}
        self._clean_at = LINES_AT_MOST

    @property
    def lines(self) -> int:
        """The number of clients, once for each broker, that have lists in flight or waiting."""
        return len(self._lines)

    def counts(self, principal: str, address: str) -> tuple[int, int]:
        """How many lists of a client are in flight, and how many wait. If no address is given, all addresses
        count.
        """
        in_flight = waiting = 0
        for line in self._lines.values():
            _, (name, where) = line.key
            if name == principal and (not address or where == address):
                in_flight += len(line.in_flight)
                waiting += len(line.waiting)
        return in_flight, waiting

    def join(self, key: LineKey, size: native, now: float) -> ListTurn:
        """Return the turn of a list of a client for a broker, behind those that wait."""
        line = self._lines.get(key)
        if line is None:
            if len(self._lines) >= self._clean_at:
                self._clean(now)
            line = self._lines[key] = Line(key)
        return ListTurn(self, line, size)

    def _clean(self, now: float) -> None:
        for line in list(self._lines.values()):
            line.expire(now)
        self._clean_at = max(2 * len(self._lines), LINES_AT_MOST)

    def wake_first(self, line: Line) -> None:
        """Have the first list in a line ask again, or forget an empty line."""
        first = line.first
        if first is None:
            if not line.in_flight:
                self._lines.pop(line.key, None)
        elif first.wake is not None and not first.woken and self._next_turn is not None:
            first.woken = True
            self._next_turn(first.wake)
