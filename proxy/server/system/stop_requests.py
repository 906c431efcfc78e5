"""StopRequests: the requests to stop that a process gets, by signals or from its supervisor."""

import asyncio
from contextlib import suppress
from typing import Final


class StopRequests:
    """The requests of one process. They may come in one turn of the event loop, so each has an event of its
    own.
    """

    def __init__(self) -> None:
        self.first: Final = asyncio.Event()
        """Set when the proxy is to stop."""
        self.second: Final = asyncio.Event()
        """Set when it is not to wait for limits.shutdown_delay_seconds."""

    def request(self) -> None:
        """Take a signal, or the end of the supervisor."""
        (self.second if self.first.is_set() else self.first).set()

    async def delay(self, seconds: float) -> None:
        """Wait until a second request, at most for `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.second.wait()
