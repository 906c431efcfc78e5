"""BrokerStream: reads the broker's socket while large answers go past the relay.

In BrokerSide's place it is given a buffer of our own instead of a copy of what was read. Where the system
can splice, that buffer is small: it tells that something is there, and the rest goes from socket to socket.
Else it is large, and never read into beyond what may pass.
"""

from typing import TYPE_CHECKING, Final, final

from proxy.relay.relay import Relay
from proxy.server.connection.direct import Direct
from proxy.server.connection.splice import PIPE_BYTES, SPLICE

if TYPE_CHECKING:
    from proxy.server.connection.broker_side import BrokerSide
    from proxy.server.connection.connection import Connection

LEAST_BYTES: Final = 32 << 10
"""For less it is not worth the change."""
BUFFER: Final = memoryview(bytearray(256 << 10))
"""Shared by all: what is read into it has left it before anything else is read."""
HEAD_BYTES: Final = 8192
"""What is read before the rest is spliced: the end of one answer, and what the relay wants to see of the next
before it passes on any of it.
"""
HEAD: Final = BUFFER[:HEAD_BYTES]
NOTHING: Final = BUFFER[:0]
MISSES: Final = 2
"""Reads in a row after which nothing was passable: one had the end of an answer, two are no large answers."""


@final
class BrokerStream:
    """A protocol with the methods of an asyncio.BufferedProtocol; a connection has one for all answers."""

    def __init__(
        self, connection: "Connection", side: "BrokerSide", descriptor: int, relay: Relay, direct: Direct
    ) -> None:
        """`descriptor` is that of the broker's socket, whose bytes are the broker's own."""
        SPLICE.open()
        self._relay: Final = relay
        self._direct: Final = direct
        self._connection: Final = connection
        self._side: Final = side
        self._descriptor: Final = descriptor
        self._on = False
        """Whether it reads, and not the BrokerSide."""
        self._misses = 0

    def stop(self) -> None:
        """What is still read goes nowhere."""
        self._read(False)

    def follow(self) -> None:
        """The relay has seen bytes of the broker's, and what it made of them is written: pass on what else is
        there of a large answer, and read on in the way that suits what comes.
        """
        if self._relay.passable >= LEAST_BYTES:
            self._misses = 0
            self._read(True)
            if SPLICE.works:
                self.pass_by(NOTHING)
        elif self._on:
            self._misses += 1
            if self._misses == MISSES or not SPLICE.works:
                self._read(False)

    def pass_by(self, data: memoryview) -> bool:
        """Have these bytes go past the relay, and with them what else the socket has of their answer; False
        where the relay has to see them.
        """
        relay = self._relay
        passable = relay.passable
        size = len(data)
        if passable < size:
            return False
        if SPLICE.works and (size == 0 or size == HEAD_BYTES):
            size = self._direct.splice(data, self._descriptor, min(passable - size, PIPE_BYTES))
            if size < 0:
                return False
        elif not self._direct.write(data):
            return False
        relay.pass_by(size)
        if not SPLICE.works and relay.passable < LEAST_BYTES:
            self._read(False)
        return True

    def _read(self, on: bool) -> None:
        if on != self._on:
            self._on = on
            self._side.read_with(self if on else None)

    # The socket's side

    def get_buffer(self, sizehint: int) -> memoryview:
        if SPLICE.works:
            return HEAD
        return BUFFER[: self._relay.passable or len(BUFFER)]

    def buffer_updated(self, size: int) -> None:
        self._connection.broker_streamed(BUFFER[:size], self)

    def data_received(self, data: bytes) -> None:
        """asyncio's own loop asks only a subclass of BufferedProtocol for a buffer."""
        self._connection.broker_sent(data)

    def pause_writing(self) -> None:
        self._connection.broker_full(True)

    def resume_writing(self) -> None:
        self._connection.broker_full(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self._side.connection_lost(exc)
