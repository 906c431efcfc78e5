"""BrokerSide: the broker's socket of a Connection, connected when there is something to send to it."""

import asyncio
from typing import TYPE_CHECKING, Final, cast, final

from proxy.relay.relay import Relay
from proxy.server.connection.broker_stream import LEAST_BYTES, BrokerStream
from proxy.server.connection.direct import Direct, plain_socket
from proxy.server.connection.pauses import Pauses

if TYPE_CHECKING:
    from proxy.server.connection.connection import Connection

WRITE_BUFFER_BYTES: Final = 0
"""Where more than so much waits to be written to one side, the other is not read from. Nothing may wait: the
system's own buffers keep both sides busy, and what is read meanwhile would have to be copied.
"""
TLS_WRITE_BUFFER_BYTES: Final = 64 << 10
"""The same over TLS, where a limit of 0 is reached by nothing at all; what is written is copied anyway."""
LINGER_SECONDS: Final = 30.0
"""How long a broker may take to read the rest and close after its client has gone."""


@final
class BrokerSide:
    """Tells its connection what the broker sends, and when it takes no more."""

    __deletable__ = ("_connection",)

    def __init__(self, connection: "Connection", loop: asyncio.AbstractEventLoop) -> None:
        self.transport: asyncio.Transport | None = None
        """None before it is connected, and after it has been lost."""
        self.connecting = False
        self._connection = connection
        self._loop: Final = loop
        self._waiting: list[bytes] = []
        self._ending = False
        self._stream: BrokerStream | None = None
        """Made when it is needed first."""
        self._descriptor = -1
        """The socket's, where its bytes are the broker's own, not TLS."""
        self.pauses: Final = Pauses()

    def wait_with(self, pieces: list[bytes]) -> bool:
        """Keep this until the broker is connected; whether somebody has to see to that now."""
        self._waiting.extend(pieces)
        asked = self.connecting
        self.connecting = True
        return not asked

    def pause(self, why: int, on: bool) -> None:
        """Stop reading for one reason, or for one reason less."""
        self.pauses.change(None if self._ending else self.transport, why, on)

    def failed(self) -> None:
        """The broker cannot be connected."""
        self.connecting = False
        self._waiting = []

    def follow(self, relay: Relay, direct: Direct) -> None:
        """See BrokerStream.follow()."""
        stream = self._stream
        if stream is None:
            if relay.passable < LEAST_BYTES or self._descriptor < 0:
                return
            stream = BrokerStream(self._connection, self, self._descriptor, relay, direct)
            self._stream = stream
        stream.follow()

    def read_with(self, stream: BrokerStream | None) -> None:
        """Let this one read the socket; None: as it is usual."""
        transport = self.transport
        if transport is not None:
            transport.set_protocol(cast("asyncio.Protocol", stream or self))

    @property
    def gone(self) -> bool:
        """Whether there is no socket, and none to come."""
        return self.transport is None and not self.connecting

    def part(self) -> None:
        """All is over on both sides: let go of the connection."""
        self._stream = None
        del self._connection

    def end(self) -> None:
        """Let the broker read to the end: closing at once, with an answer unread, could reset what it has not
        read. Where it is not connected yet, this is done then.
        """
        self._ending = True
        transport = self.transport
        if transport is None:
            return
        if self._stream is not None:
            self._stream.stop()
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
        self._descriptor = plain_socket(broker)
        self.pauses.clear()
        broker.set_write_buffer_limits(
            high=WRITE_BUFFER_BYTES if self._descriptor >= 0 else TLS_WRITE_BUFFER_BYTES
        )
        broker.writelines(self._waiting)
        self._waiting = []
        if self._ending:
            self.end()
        else:
            self._connection.broker_connected()

    def data_received(self, data: bytes) -> None:
        self._connection.broker_sent(data)

    def pause_writing(self) -> None:
        self._connection.broker_full(True)

    def resume_writing(self) -> None:
        self._connection.broker_full(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._connection.broker_lost()
