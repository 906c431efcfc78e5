"""BrokerSide: the broker's socket of a Connection, connected when there is something to send to it."""

import asyncio
from typing import TYPE_CHECKING, Final, cast, final

if TYPE_CHECKING:
    from proxy.server.connection import Connection

WRITE_BUFFER_BYTES: Final = 256 << 10
"""So much may wait to be written to either side before the other is not read from any more."""
READ_BYTES: Final = 256 << 10
BUFFER: Final = memoryview(bytearray(READ_BYTES))
"""Every broker's bytes are read into this one: they are gone from it before anything else is read."""
LINGER_SECONDS: Final = 30.0
"""How long a broker may take to read the rest and close after its client has gone."""


@final
class BrokerSide:
    """Tells its connection what the broker sends, and when it takes no more."""

    def __init__(self, connection: "Connection", loop: asyncio.AbstractEventLoop) -> None:
        self.transport: asyncio.Transport | None = None
        """None before it is connected, and after it has been lost."""
        self.connecting = False
        self._connection: Final = connection
        self._loop: Final = loop
        self._waiting: list[bytes] = []
        self._ending = False

    def wait_with(self, pieces: list[bytes]) -> bool:
        """Keep this until the broker is connected; whether somebody has to see to that now."""
        self._waiting.extend(pieces)
        asked = self.connecting
        self.connecting = True
        return not asked

    def failed(self) -> None:
        """The broker cannot be connected."""
        self.connecting = False
        self._waiting = []

    @property
    def gone(self) -> bool:
        """Whether there is no socket, and none to come."""
        return self.transport is None and not self.connecting

    def end(self) -> None:
        """Let the broker read to the end: closing at once, with an answer unread, could reset what it has not
        read. Where it is not connected yet, this is done then.
        """
        self._ending = True
        transport = self.transport
        if transport is None:
            return
        if transport.can_write_eof() and not transport.is_closing():
            transport.write_eof()
            transport.resume_reading()
        elif not transport.is_closing():
            transport.close()  # over TLS: reads on until the broker has said goodbye too
        self._loop.call_later(LINGER_SECONDS, transport.abort)

    # The socket's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        broker = cast("asyncio.Transport", transport)
        self.connecting = False
        self.transport = broker
        broker.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        broker.writelines(self._waiting)
        self._waiting = []
        if self._ending:
            self.end()
        else:
            self._connection.broker_connected()

    def data_received(self, data: bytes) -> None:
        """For asyncio's own loop: it asks nobody for a buffer who is not a BufferedProtocol."""
        self._connection.broker_sent(memoryview(data))

    def get_buffer(self, sizehint: int) -> memoryview:
        return BUFFER

    def buffer_updated(self, size: int) -> None:
        self._connection.broker_sent(BUFFER[:size])

    def pause_writing(self) -> None:
        self._connection.broker_full(True)

    def resume_writing(self) -> None:
        self._connection.broker_full(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._connection.broker_lost()
