"""BrokerQuestion: a request of the proxy's own on the client's broker connection, and its response."""

import asyncio
from typing import Final, final


@final
class BrokerQuestion:
    """The questions of one connection, one at a time."""

    __slots__ = ("_loop", "_response")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._response: asyncio.Future[bytes] | None = None
        """None before the first request."""

    @property
    def open(self) -> bool:
        """Whether a response is awaited."""
        return self._response is not None and not self._response.done()

    def ask(self) -> "asyncio.Future[bytes]":
        """Begin to await the response to a request: header and body."""
        self._response = self._loop.create_future()
        return self._response

    def answer(self, payloads: list[bytes]) -> None:
        """Take responses of the broker; the question awaits the first."""
        for payload in payloads:
            if self._response is not None and not self._response.done():
                self._response.set_result(payload)

    def fail(self, error: Exception) -> None:
        """Raise an error from the response; only if it is awaited."""
        assert self._response is not None, "ask() has set it"
        self._response.set_exception(error)

    def cancel(self) -> None:
        """Cancel the question, because the connection is over."""
        if self._response is not None:
            self._response.cancel()
