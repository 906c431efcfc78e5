"""Drain: how long a client is still served, and read from, when the proxy shuts down."""

import asyncio
from typing import Final, final

DRAIN_POLL_SECONDS: Final = 0.02
"""How often each connection is looked at during a shutdown."""
DRAIN_CALLS: Final = 25
"""Half a second, in which requests with acks=0 that are already in the sockets' buffers are read."""
QUIET_SECONDS: Final = 0.1
"""A client that has sent nothing for this long is not in the middle of sending."""
ACTIVE_SECONDS: Final = 1.0
"""A client from which or for which nothing has come for this long does not send its next request soon."""
REQUEST_CALLS: Final = 5
"""A tenth of a second, in which an active client sends its next request."""
GENTLE_SECONDS: Final = 0.25
"""How long a client may take to close its side after the proxy has closed its own."""
SLOW_SECONDS: Final = 0.25
"""A response that is due for longer is slow: a shutdown serves other clients until it arrives."""


@final
class Drain:
    """The shutdown of one connection; called() counts the polls, one every DRAIN_POLL_SECONDS."""

    __slots__ = ("_blocked", "_calls", "_request_calls")

    def __init__(self) -> None:
        self._calls = 0
        self._blocked = False
        self._request_calls = 0

    def called(self, blocked: bool) -> None:
        """Count a poll, unless `blocked`: the broker accepts no bytes, so the client could not be read."""
        self._blocked = blocked
        self._calls += not blocked

    @property
    def read_enough(self) -> bool:
        """Whether a client that continues to send has been read for long enough."""
        return self._calls > DRAIN_CALLS

    def quiet(self, silent_seconds: float) -> bool:
        """Whether a client that has been silent for this long has no bytes in flight."""
        return not self._blocked and silent_seconds >= QUIET_SECONDS

    def awaits_request(self, silent_seconds: float) -> bool:
        """Count a poll at which the client has no outstanding request; whether to wait for its next one.

        `silent_seconds`: for how long nothing has come from the client or for it.
        """
        self._request_calls += 1
        return self._request_calls <= REQUEST_CALLS and silent_seconds < ACTIVE_SECONDS


def close_gently(client: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
    """Close the client's side without a reset. A reset would take away responses that have not arrived yet;
    it follows if the client has sent requests that are not read.
    """
    if client.is_closing() or not client.can_write_eof():
        client.close()
        return
    client.write_eof()
    client.resume_reading()
    loop.call_later(GENTLE_SECONDS, client.close)
