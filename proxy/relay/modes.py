"""Modes of the two directions of a relay, and the transitions between them.

Each direction is in one mode at a time, and only Mode.change() changes it, by the table of the direction.
docs/mode_diagrams.py generates the diagrams in docs/design.md from these tables.
"""

from typing import Final, final

from mypy_extensions import i64 as native

READING: Final = 0
"""Both directions: frames are read whole, one after the other. Nearly all traffic stays in this mode."""
BUFFERING: Final = 1
"""Both directions: parts of a large frame are kept until it is whole."""
CUTTING_THROUGH: Final = 2
"""Both directions: a large frame is forwarded while it arrives."""
FETCH_WAITING: Final = 3
"""Requests: a fetch waits for its quotas; no request behind it is read."""
CLOSING: Final = 4
"""Requests: no request is read, and the connection ends as soon as the client is no longer muted."""
COLLECTING: Final = 5
"""Responses: parts of a response that the proxy itself has asked for are kept until it is whole."""
AWAITING_PORTS: Final = 6
"""Responses: a response names brokers for which the shell has no ports yet; nothing behind it is read."""
PRODUCE_WAITING: Final = 7
"""Requests: a Produce request, or the rest of it, waits for a debt, or for responses that are due before its
own; nothing behind it is read.
"""
MEMORY_WAITING: Final = 8
"""Requests: a large Produce request waits for memory to be buffered in; nothing more is read."""
NAMES_WAITING: Final = 9
"""Requests: a Produce request, or the rest of it, waits for topic names; nothing behind it is read."""
FIRST_WAITING: Final = 10
"""Requests: the first request of a client on a connection waits for a debt; nothing behind it is read."""

NAMES: Final = (
    "reading",
    "buffering",
    "cutting_through",
    "fetch_waiting",
    "closing",
    "collecting",
    "awaiting_ports",
    "produce_waiting",
    "memory_waiting",
    "names_waiting",
    "first_waiting",
)

Transitions = dict[tuple[int, int], str]
"""By mode before and after: what causes the change."""

REQUEST_TRANSITIONS: Final[Transitions] = {
    (READING, BUFFERING): "part of a large request that a quota may change, or that the proxy answers",
    (BUFFERING, READING): "the request is whole",
    (READING, MEMORY_WAITING): "there is no memory to buffer a Produce request over 1 MiB",
    (MEMORY_WAITING, READING): "it is time to ask again",
    (READING, CUTTING_THROUGH): "part of any other large request",
    (CUTTING_THROUGH, READING): "the request's last byte",
    (READING, FETCH_WAITING): "quotas have no bytes for a fetch, or omit every partition of it",
    (FETCH_WAITING, READING): "the fetch is forwarded or answered",
    (READING, PRODUCE_WAITING): "a Produce request waits for its client's debt, or for earlier responses",
    (PRODUCE_WAITING, READING): "the debt is paid, and the responses have arrived",
    (CUTTING_THROUGH, PRODUCE_WAITING): "the same, for a partition in a large request",
    (PRODUCE_WAITING, CUTTING_THROUGH): "the debt is paid, and the responses have arrived",
    (READING, NAMES_WAITING): "a Produce request has unknown topic ids, and quotas count by topic",
    (NAMES_WAITING, READING): "the names are known, or the cluster does not have the topics",
    (CUTTING_THROUGH, NAMES_WAITING): "the same, for a partition in a large request",
    (NAMES_WAITING, CUTTING_THROUGH): "the names are known",
    (READING, FIRST_WAITING): "the first request of a client, which owes request time or mutations",
    (FIRST_WAITING, READING): "the debt is paid",
    (READING, CLOSING): "a quota rejects a Produce request with acks=0",
}
RESPONSE_TRANSITIONS: Final[Transitions] = {
    (READING, BUFFERING): "part of a large response to FindCoordinator, or to a partly rejected Produce",
    (BUFFERING, READING): "the response is whole",
    (READING, CUTTING_THROUGH): "part of any other large response",
    (CUTTING_THROUGH, READING): "the response's last byte",
    (READING, COLLECTING): "part of a response that the proxy has asked for",
    (COLLECTING, READING): "the response is whole",
    (READING, AWAITING_PORTS): "a response names an unknown broker",
    (AWAITING_PORTS, READING): "the broker has a port",
    (CUTTING_THROUGH, AWAITING_PORTS): "a large response names an unknown broker",
    (AWAITING_PORTS, CUTTING_THROUGH): "the broker has a port",
}


ModesAfter = list[int]
"""By mode, those that may follow it, as a bit each. A change happens several times per request, and needs no
more than this of a table.
"""


def modes_after(transitions: Transitions) -> ModesAfter:
    """Return the modes that may follow each mode."""
    after = [0] * len(NAMES)
    for first, second in transitions:
        after[first] |= 1 << second
    return after


REQUEST_MODES: Final = modes_after(REQUEST_TRANSITIONS)
RESPONSE_MODES: Final = modes_after(RESPONSE_TRANSITIONS)


@final
class Mode:
    """The mode of one direction."""

    __slots__ = ("_after", "now")

    def __init__(self, after: ModesAfter) -> None:
        self.now: native = READING
        self._after: Final = after

    def change(self, after: native) -> None:
        """Enter a mode; raises AssertionError if the table has no such transition."""
        before = self.now
        assert self._after[before] >> after & 1, f"no transition from {NAMES[before]} to {NAMES[after]}"
        self.now = after
