"""The event loop of the load pair: one epoll, and one callback per socket.

asyncio joins what is sent in one iteration of its loop, but Kafka's clients and brokers make one system call
per message. The load pair does the same; otherwise the proxy under test would receive several frames per
read.
"""

import select
import socket
from collections.abc import Callable
from typing import Final

READ: Final = select.EPOLLIN
WRITE: Final = select.EPOLLOUT
Callback = Callable[[int], None]


class Poller:
    """Calls back with the events of registered sockets."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callback] = {}

    def add(self, sock: socket.socket, callback: Callback) -> None:
        """Call `callback(events)` whenever `sock` can be read."""
        self._callbacks[sock.fileno()] = callback
        self._epoll.register(sock.fileno(), READ)

    def watch_writes(self, sock: socket.socket, wanted: bool) -> None:
        """Start or stop calling back when `sock` can be written."""
        self._epoll.modify(sock.fileno(), READ | WRITE if wanted else READ)

    def remove(self, sock: socket.socket) -> None:
        """Unregister `sock`; call it before the socket is closed."""
        self._epoll.unregister(sock.fileno())
        del self._callbacks[sock.fileno()]

    def wait(self, seconds: float) -> int:
        """Wait up to `seconds`, in ms resolution, and handle ready sockets; return their number."""
        events = self._epoll.poll(seconds)
        for descriptor, mask in events:
            callback = self._callbacks.get(descriptor)
            if callback is not None:
                callback(mask)
        return len(events)

    def wait_until_due(self, seconds: float) -> None:
        """Do what wait() does, but in us resolution: the timeout of select() is finer than that of epoll."""
        if seconds > 0:
            select.select([self._epoll], [], [], seconds)
        self.wait(0)
