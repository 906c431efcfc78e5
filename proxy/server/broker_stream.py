"""BrokerStream: reads the broker's socket while a large answer goes past the relay.

In BrokerSide's place it is given a buffer of our own instead of a copy of what was read, and it is never read
beyond what may pass.
"""

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from proxy.server.broker_side import BrokerSide
    from proxy.server.connection import Connection

LEAST_BYTES: Final = 32 << 10
"""For less it is not worth the change."""
BUFFER: Final = memoryview(bytearray(256 << 10))
"""Shared by all: what is read into it has left it before anything else is read."""


@final
class BrokerStream:
    """A protocol with the methods of an asyncio.BufferedProtocol; a connection has one for all answers."""

    def __init__(self, connection: "Connection", side: "BrokerSide") -> None:
        self._connection: Final = connection
        self._side: Final = side

    def get_buffer(self, sizehint: int) -> memoryview:
        return BUFFER[: self._connection.passable or len(BUFFER)]

    def buffer_updated(self, size: int) -> None:
        self._connection.broker_streamed(BUFFER[:size])

    def data_received(self, data: bytes) -> None:
        """asyncio's own loop asks only a subclass of BufferedProtocol for a buffer."""
        self._connection.broker_sent(data)

    def pause_writing(self) -> None:
        self._connection.broker_full(True)

    def resume_writing(self) -> None:
        self._connection.broker_full(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self._side.connection_lost(exc)
