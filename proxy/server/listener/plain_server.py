"""PlainServer: a listening port without TLS."""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, Protocol

from proxy.server.listener.acceptor import Acceptor, Room
from proxy.tasks import Tasks


class Entry(Protocol):
    """Counts the connections of a listener."""

    @property
    def room(self) -> Room:
        """How many connections there is room for."""

    def enter(self, address: str, peer: str) -> bool:
        """Count a connection that has been accepted; False closes it."""

    def abandoned(self, address: str) -> None:
        """Count a connection no longer that ended before it was opened."""

    def accept_failed(self, error: OSError) -> None:
        """The port cannot accept a connection, and goes on trying."""

    def accepts_later(self) -> None:
        """There is no room for more connections: the port accepts them later."""


class PlainServer:
    """Accepts connections until close()."""

    def __init__(
        self, entry: Entry, bound: socket.socket, make: Callable[[], asyncio.Protocol], tasks: Tasks
    ) -> None:
        """`bound` listens already; `make` makes a connection's protocol."""
        self._entry: Final = entry
        self._make: Final = make
        self._tasks: Final = tasks
        self._acceptor: Final = Acceptor(bound, entry.room, self)
        self._loop: Final = asyncio.get_running_loop()

    def start(self) -> None:
        """Serve the port."""
        self._acceptor.start()

    @property
    def waits(self) -> bool:
        """Whether connections wait in the backlog until there is room."""
        return self._acceptor.waits

    def close(self) -> None:
        """Accept no more connections."""
        self._acceptor.close()

    # Taker

    def take(self, client: socket.socket, address: str, peer: str) -> None:
        if self._entry.enter(address, peer):
            self._tasks.start(self._connect(client, address))
        else:
            client.close()

    def accept_failed(self, error: OSError) -> None:
        self._entry.accept_failed(error)

    def accepts_later(self) -> None:
        self._entry.accepts_later()

    async def _connect(self, client: socket.socket, address: str) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, client)
        except OSError:
            client.close()
            self._entry.abandoned(address)
