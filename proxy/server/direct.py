"""Direct: large data to a client without a copy of it, while it is still in the processor's cache.

A transport keeps what it is given until the loop comes round to writing it, so each piece has to be a copy of
the buffer that was read into. Where nothing waits in the transport, the system can take it at once.
"""

import asyncio
import os
from typing import Final, final


def direct(transport: asyncio.Transport) -> "Direct | None":
    """A way past the transport; None where it has more to do than to write, such as TLS."""
    if transport.get_extra_info("sslcontext") is not None:
        return None
    socket = transport.get_extra_info("socket")
    return None if socket is None else Direct(transport, socket.fileno())


@final
class Direct:
    """Past the transport of a connected stream socket; `descriptor` is the socket's."""

    def __init__(self, transport: asyncio.Transport, descriptor: int) -> None:
        self._transport: Final = transport
        self._descriptor: Final = descriptor

    def write(self, data: memoryview) -> bool:
        """Write all of it, a rest through the transport; False where something else has to be written first.

        Nothing of `data` is held on to. Errors are left to the transport, which meets them as well.
        """
        transport = self._transport
        # The descriptor of a transport that closes may be another socket's already.
        if transport.is_closing() or transport.get_write_buffer_size() > 0:
            return False
        try:
            written = os.write(self._descriptor, data)
        except OSError:
            written = 0
        if written < len(data):
            transport.write(bytes(data[written:]))
        return True
