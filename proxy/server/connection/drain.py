"""Drain: how long a client is still served, and read from, when the proxy shuts down."""

from typing import Final, final

DRAIN_POLL_SECONDS: Final = 0.02
DRAIN_CALLS: Final = 25
"""Half a second, in which requests with acks=0 that are already in the sockets' buffers are read."""
QUIET_SECONDS: Final = 0.1
"""A client from which nothing has come for so long is not in the middle of sending."""
GENTLE_SECONDS: Final = 0.25
"""How long a client may take to close its side after the proxy has closed its own."""
SLOW_SECONDS: Final = 0.25
"""A response that is due for longer would hold up a shutdown: other clients are served meanwhile."""


@final
class Drain:
    """Of one connection; called() every DRAIN_POLL_SECONDS."""

    __slots__ = ("_blocked", "_calls")

    def __init__(self) -> None:
        self._calls = 0
        self._blocked = False

    def called(self, blocked: bool) -> None:
        """`blocked`: the broker could not take more, so the client could not be read from."""
        self._blocked = blocked
        self._calls += not blocked

    @property
    def read_enough(self) -> bool:
        """Whether a client that goes on sending has been read from for long enough."""
        return self._calls > DRAIN_CALLS

    def quiet(self, silent_seconds: float) -> bool:
        """Whether one that has been silent for so long has nothing on its way."""
        return not self._blocked and silent_seconds >= QUIET_SECONDS
