"""ConfigsMemory: the configs that the proxy has in memory for responses to DescribeConfigs.

The configs of a topic have up to 15 KB, and a request of 32 KB may name a thousand topics. A client may have
many connections, and not read its responses. So if the responses of a client have more than FREE_BYTES, only
the oldest one grows, and the others wait until the client has read it. A client is a principal, or the
address of those without one, with all its connections.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from proxy.quota.identity import ClientKey
from proxy.relay.close_reasons import CLIENT_CLOSED, RelayError

FREE_BYTES: Final = 8 << 20
"""Bytes of configs that the responses of a client have together before all but the oldest wait."""
LOOK_SECONDS: Final = 1.0
"""How often a response that waits looks whether its client has closed the connection."""


class ConfigsMemory:
    """The memory of a process."""

    def __init__(self) -> None:
        self._of_client: Final[dict[ClientKey, ClientConfigs]] = {}

    def begin(self, client: ClientKey) -> "ResponseMemory":
        """Begin a response without configs; free() ends it."""
        of_client = self._of_client.get(client)
        if of_client is None:
            of_client = self._of_client[client] = ClientConfigs()
        return ResponseMemory(self, client, of_client)

    @property
    def clients(self) -> int:
        """The number of clients with responses."""
        return len(self._of_client)

    def forget(self, client: ClientKey) -> None:
        """Drop a client without responses."""
        del self._of_client[client]


class ClientConfigs:
    """The responses of one client."""

    def __init__(self) -> None:
        self.size = 0
        self.responses: Final[dict[ResponseMemory, None]] = {}
        """In the order in which they have begun."""
        self.freed = asyncio.Event()
        """Set when a response ends; those that wait then look at the next event."""


class ResponseMemory:
    """The memory of one response."""

    def __init__(self, memory: ConfigsMemory, client: ClientKey, of_client: ClientConfigs) -> None:
        self._memory: Final = memory
        self._client: Final = client
        self._of_client: Final = of_client
        self._size = 0
        self._ended = False
        of_client.responses[self] = None

    async def room(self, gone: Callable[[], bool]) -> None:
        """Return when the response may grow. Raises RelayError if its client has closed the connection, of
        which gone() tells.
        """
        of_client = self._of_client
        while of_client.size > FREE_BYTES and next(iter(of_client.responses)) is not self:
            if gone():
                raise RelayError(CLIENT_CLOSED, "the client is gone")
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await of_client.freed.wait()

    def add(self, size: int) -> None:
        """Count bytes of the response."""
        self._size += size
        self._of_client.size += size

    def free(self) -> None:
        """End the response: the client has read it, or is gone. Later calls do nothing."""
        if self._ended:
            return
        self._ended = True
        of_client = self._of_client
        of_client.size -= self._size
        del of_client.responses[self]
        of_client.freed.set()
        of_client.freed = asyncio.Event()
        if not of_client.responses:
            self._memory.forget(self._client)
