"""SocketStream: reads a socket while a large message from it is forwarded past the relay.

It replaces the transport's usual protocol, so that the transport reads into a buffer of the proxy instead of
a new bytes object. If the system can splice, the buffer is small: a read only shows that data has arrived,
and the rest is spliced. Otherwise the buffer is large, and a read ends where the bytes that may be forwarded
end.
"""

import asyncio
from typing import Final, cast, final

from proxy.server.connection.streams.direct import Direct
from proxy.server.connection.streams.side import StreamedSide
from proxy.server.connection.streams.splice import PIPE_BYTES, SPLICE

LEAST_BYTES: Final = 32 << 10
"""Below this, changing the transport's protocol costs more than the copy that it saves."""
BUFFER: Final = memoryview(bytearray(256 << 10))
"""All connections share it: its content is written or copied before the event loop reads again."""
HEAD_BYTES: Final = 8192
"""Bytes that are read before the rest is spliced: the end of one message, and the part of the next one that
the relay must parse before it forwards the message.
"""
HEAD: Final = BUFFER[:HEAD_BYTES]
NOTHING: Final = BUFFER[:0]
MISSES: Final = 2
"""Stop after this many successive reads with nothing to forward. One such read may be the end of a large
message; two mean that no large message follows.
"""


@final
class SocketStream:
    """A protocol with the methods of an asyncio.BufferedProtocol; a side of a connection has one for all of
    its messages.
    """

    def __init__(
        self, side: StreamedSide, transport: asyncio.Transport, descriptor: int, direct: Direct
    ) -> None:
        """`side` is the transport's protocol while this one does not read; `descriptor` is that of its
        socket, which has no TLS. `direct` writes to the other side.
        """
        SPLICE.open()
        self._side: Final = side
        self._direct: Final = direct
        self._transport: Final = transport
        self._descriptor: Final = descriptor
        self._on = False
        """Whether this object is the transport's protocol."""
        self._misses = 0

    def stop(self) -> None:
        """Give the transport back to its usual protocol."""
        self._read(False)

    def follow(self) -> None:
        """Forward the bytes of a large message that wait in the socket, and choose who reads the next ones.

        Call it after the relay has received the bytes of this side and its output has been written.
        """
        if self._side.forwardable() >= LEAST_BYTES:
            self._misses = 0
            self._read(True)
            if SPLICE.works:
                self.forward(NOTHING)
        elif self._on:
            self._misses += 1
            if self._misses == MISSES or not SPLICE.works:
                self._read(False)

    def forward(self, data: memoryview) -> bool:
        """Send these bytes to the other side, and the bytes of the same message that wait in the socket.

        Return False, and send nothing, if the relay has to parse the bytes.
        """
        side = self._side
        forwardable = side.forwardable()
        size = len(data)
        if forwardable < size:
            return False
        if SPLICE.works and (size == 0 or size == HEAD_BYTES):
            size = self._direct.splice(data, self._descriptor, min(forwardable - size, PIPE_BYTES))
            if size < 0:
                return False
        elif not self._direct.write(data):
            return False
        side.forwarded(size)
        if not SPLICE.works and side.forwardable() < LEAST_BYTES:
            self._read(False)
        return True

    def _read(self, on: bool) -> None:
        if on != self._on:
            self._on = on
            self._transport.set_protocol(cast("asyncio.Protocol", self if on else self._side))

    # The socket's side

    def get_buffer(self, sizehint: int) -> memoryview:
        if SPLICE.works:
            return HEAD
        return BUFFER[: self._side.forwardable() or len(BUFFER)]

    def buffer_updated(self, size: int) -> None:
        if not self._side.active():
            return
        data = BUFFER[:size]
        if not self.forward(data):
            self._side.data_received(bytes(data))

    def data_received(self, data: bytes) -> None:
        """asyncio's own loop asks only a subclass of BufferedProtocol for a buffer."""
        self._side.data_received(data)

    def eof_received(self) -> bool:
        return self._side.eof_received()

    def pause_writing(self) -> None:
        self._side.pause_writing()

    def resume_writing(self) -> None:
        self._side.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._side.connection_lost(exc)
