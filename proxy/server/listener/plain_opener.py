"""PlainOpener: opens the accepted connections of a port without TLS."""

import asyncio
import socket
from collections.abc import Callable
from typing import Final


class PlainOpener:
    """Fulfils Opener."""

    def __init__(self, make: Callable[[], asyncio.Protocol], abandoned: Callable[[str], None]) -> None:
        """`make` makes a connection's protocol. `abandoned` takes back the count of a connection from an
        address, because it ended before it was opened.
        """
        self._make: Final = make
        self._abandoned: Final = abandoned
        self._loop: Final = asyncio.get_running_loop()

    async def open(self, client: socket.socket, address: str, peer: str) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, client)
        except OSError:
            client.close()
            self._abandoned(address)
