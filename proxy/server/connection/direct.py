"""Direct: large data to a client without a copy of it, while it is still in the processor's cache.

A transport keeps what it is given until the loop comes round to writing it, so each piece has to be a copy of
the buffer that was read into. Where nothing waits in the transport, the system can take it at once.
"""

import asyncio
import os
from typing import Final, final

from proxy.server.connection.splice import SPLICE


def direct(transport: asyncio.Transport) -> "Direct | None":
    """A way past the transport; None where it has more to do than to write, such as TLS."""
    descriptor = plain_socket(transport)
    return None if descriptor < 0 else Direct(transport, descriptor)


def plain_socket(transport: asyncio.Transport) -> int:
    """The descriptor of the socket whose bytes are the transport's; -1 where they are not, such as TLS."""
    if transport.get_extra_info("sslcontext") is not None:
        return -1
    socket = transport.get_extra_info("socket")
    descriptor: int = -1 if socket is None else socket.fileno()
    return descriptor


@final
class Direct:
    """Past the transport of a connected stream socket; `descriptor` is the socket's."""

    def __init__(self, transport: asyncio.Transport, descriptor: int) -> None:
        self._transport: Final = transport
        self._descriptor: Final = descriptor

    def write(self, data: memoryview) -> bool:
        """Write all of it, a rest through the transport; False where something else has to be written first.

        No reference to `data` is kept. Errors are left to the transport, which meets them as well.
        """
        if not self._free:
            return False
        try:
            written = os.write(self._descriptor, data)
        except OSError:
            written = 0
        if written < len(data):
            self._transport.write(bytes(data[written:]))
        return True

    def splice(self, head: memoryview, source: int, most: int) -> int:
        """Write `head`, and up to `most` bytes that the socket `source` has, without a copy of those.

        How many there were in all, the head included; -1 where something else has to be written first.
        """
        if not self._free or not SPLICE.ready():
            return -1
        size = len(head) + SPLICE.fill(head, source, most)
        rest = SPLICE.empty_into(self._descriptor, size)
        if rest:
            self._transport.write(rest)
        return size

    @property
    def _free(self) -> bool:
        """Whether nothing waits in the transport. The descriptor of one that closes may be another socket's
        already.
        """
        transport = self._transport
        return not transport.is_closing() and transport.get_write_buffer_size() == 0
