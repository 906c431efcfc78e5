"""Acceptor: accepts the connections of one listening port, as long as there is room for more.

A connection for which there is no room stays in the port's backlog until another one ends, as with
max.connections in Kafka. The event loop's own servers cannot stop accepting; without a free descriptor they
accept connections and close them.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, Protocol

from proxy.server.connection.origin import Origin
from proxy.server.listener.accept.keep_alive import keep_alive
from proxy.tasks import Tasks

ACCEPT_RETRY_SECONDS: Final = 0.5
"""The pause after a failed accept, which happens when no file descriptor is left: retrying at once would fail
in a busy loop, and descriptors come back as connections end."""
ACCEPTED_AT_A_TIME: Final = 16
"""Connections of one port that are accepted before others have their turn."""
GIVE_WAY_SECONDS: Final = 0.02
"""For how long a connection is left to other processes. A process that runs accepts it much sooner, even on a
busy machine.
"""
LEFT_AT_A_TIME: Final = 8
"""Connections that are accepted in one turn because no other process has accepted them."""


class Room(Protocol):
    """How many connections there is room for."""

    @property
    def full(self) -> bool:
        """Whether no connection may be accepted now."""

    @property
    def others_first(self) -> bool:
        """Whether another process that accepts at the same port should accept the next connection."""

    def accepts(self) -> None:
        """This process accepts connections from now on."""

    def call_with_room(self, call: Callable[[], None]) -> None:
        """Call once, as soon as there is room again."""


class Entry(Protocol):
    """Counts the connections of a listener."""

    @property
    def room(self) -> Room:
        """How many connections there is room for."""

    def enter(self, address: str, peer: str) -> bool:
        """Count a connection that has been accepted; False closes it. `peer` is the client's address with
        its port.
        """

    def accept_failed(self, error: OSError) -> None:
        """The system cannot accept a connection; the port goes on trying."""

    def accepts_later(self) -> None:
        """There is no room for more connections: the port accepts them later."""


class Opener(Protocol):
    """Opens the accepted connections of a port, with TLS or without."""

    async def open(self, client: socket.socket, origin: Origin) -> None:
        """Make the connection of an accepted socket, or close the socket. It has been counted already."""


class OriginReader(Protocol):
    """Reads where an accepted connection comes from, if a load balancer states it."""

    def read(
        self, client: socket.socket, origin: Origin, then: Callable[[socket.socket, Origin], None]
    ) -> None:
        """Call `then` with the socket and its origin, at once or later, or close the socket. `origin` is the
        other end of the socket itself.
        """


class Acceptor:
    """Accepts until close()."""

    def __init__(
        self,
        bound: socket.socket,
        entry: Entry,
        opener: Opener,
        tasks: Tasks,
        origins: OriginReader | None = None,
    ) -> None:
        """`bound` listens already; `tasks` run the opener. Without `origins` each connection comes from the
        other end of its socket.
        """
        self._bound: Final = bound
        self._entry: Final = entry
        self._room: Final = entry.room
        self._opener: Final = opener
        self._origins: Final = origins
        self._tasks: Final = tasks
        self._loop: Final = asyncio.get_running_loop()
        self._accepting = False
        self._closed = False
        self.waits = False
        """Whether connections wait in the backlog until there is room."""

    def start(self) -> None:
        """Accept connections, from now on or when there is room."""
        if self._closed or self._accepting:
            return
        if self._room.full:
            self._wait()
            return
        self.waits = False
        self._accepting = True
        self._room.accepts()
        self._bound.setblocking(False)
        self._loop.add_reader(self._bound, self._accept)

    def close(self) -> None:
        """Accept no more connections."""
        self._stop()
        self._closed = True
        self._bound.close()

    def _stop(self) -> None:
        if self._accepting:
            self._accepting = False
            self._loop.remove_reader(self._bound)

    def _give_way(self) -> None:
        self._stop()
        self._loop.call_later(GIVE_WAY_SECONDS, self._accept_left)

    def _accept_left(self) -> None:
        """Accept what other processes have not accepted."""
        self.start()
        if self._accepting:
            self._accept(LEFT_AT_A_TIME, gives_way=False)

    def _accept(self, at_most: int = ACCEPTED_AT_A_TIME, *, gives_way: bool = True) -> None:
        for _ in range(at_most):
            if self._room.full:
                self._stop()
                self._wait()
                return
            if gives_way and self._room.others_first:
                self._give_way()
                return
            try:
                client, address = self._bound.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._entry.accept_failed(error)
                self._stop()
                self._loop.call_later(ACCEPT_RETRY_SECONDS, self.start)
                return
            client.setblocking(False)
            keep_alive(client)
            origin = Origin(str(address[0]), int(address[1]))
            if self._origins is None:
                self._open(client, origin)
            else:
                self._origins.read(client, origin, self._open)

    def _open(self, client: socket.socket, origin: Origin) -> None:
        if not self._closed and self._entry.enter(origin.address, origin.peer):
            self._tasks.start(self._opener.open(client, origin))
        else:
            client.close()

    def _wait(self) -> None:
        self.waits = True
        self._entry.accepts_later()
        self._room.call_with_room(self.start)
