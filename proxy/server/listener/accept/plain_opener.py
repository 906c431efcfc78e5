"""PlainOpener: opens the accepted connections of a port without TLS."""

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Final

from proxy.server.connection.origin import Origin


class PlainOpener:
    """Opens the connections of one port. Fulfils Opener."""

    def __init__(self, make: Callable[[Origin], asyncio.Protocol], abandoned: Callable[[str], None]) -> None:
        """`make` makes a connection's protocol. `abandoned` takes back the count of a connection from an
        address, because it ended before it was opened.
        """
        self._make: Final = make
        self._abandoned: Final = abandoned
        self._loop: Final = asyncio.get_running_loop()

    async def open(self, client: socket.socket, origin: Origin) -> None:
        try:
            await self._loop.connect_accepted_socket(partial(self._make, origin), client)
        except OSError:
            client.close()
            self._abandoned(origin.address)
