"""Direct: writes large data to a client at once and without a copy.

A transport keeps data until the event loop writes it, so it needs a copy of the read buffer. If no data waits
in the transport, Direct writes the read buffer to the socket itself, while it is in the processor's cache.
"""

import asyncio
import os
from typing import Final, final

from proxy.server.connection.streams.splice import SPLICE


def encrypts(transport: asyncio.Transport) -> bool:
    """Whether the transport changes the bytes, as TLS does."""
    return transport.get_extra_info("sslcontext") is not None


def direct(transport: asyncio.Transport) -> "Direct | None":
    """Return a Direct for the transport; None if the transport changes the bytes, as TLS does."""
    descriptor = plain_socket(transport)
    return None if descriptor < 0 else Direct(transport, descriptor)


def plain_socket(transport: asyncio.Transport) -> int:
    """Return the descriptor of the transport's socket; -1 if the transport changes the bytes, as TLS does."""
    if encrypts(transport):
        return -1
    socket = transport.get_extra_info("socket")
    descriptor: int = -1 if socket is None else socket.fileno()
    return descriptor


@final
class Direct:
    """Writes to the connected stream socket `descriptor` of a transport."""

    def __init__(self, transport: asyncio.Transport, descriptor: int) -> None:
        self._transport: Final = transport
        self._descriptor: Final = descriptor

    def write(self, data: memoryview) -> bool:
        """Write `data`; the transport gets a copy of what the socket does not accept.

        Return False, and write nothing, if other data waits in the transport. No reference to `data` is kept.
        The transport finds and reports errors.
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
        """Write `head`, and then up to `most` bytes that wait in the socket `source`, without a copy of them.

        Return the number of bytes, including `head`; -1, and write nothing, if other data waits in the
        transport.
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
        """Whether no data waits in the transport. If the transport is closing, its descriptor may already be
        another socket's.
        """
        transport = self._transport
        return not transport.is_closing() and transport.get_write_buffer_size() == 0
