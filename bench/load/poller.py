"""The event loop of the load pair: one epoll, one callback for each socket.

asyncio joins what is sent within one round of its loop; Kafka's clients and brokers make one system call for
each message. A load pair must do the same, or the proxy under test would get its frames in handy bundles.
"""

import select
import socket
from collections.abc import Callable
from typing import Final

READ: Final = select.EPOLLIN
WRITE: Final = select.EPOLLOUT
Callback = Callable[[int], None]


class Poller:
    """Calls back with the events of each registered socket."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callback] = {}

    def add(self, sock: socket.socket, callback: Callback) -> None:
        """Calls `callback(events)` whenever `sock` can be read."""
        self._callbacks[sock.fileno()] = callback
        self._epoll.register(sock.fileno(), READ)

    def watch_writes(self, sock: socket.socket, wanted: bool) -> None:
        """Also calls back when `sock` can be written, or no longer does."""
        self._epoll.modify(sock.fileno(), READ | WRITE if wanted else READ)

    def remove(self, sock: socket.socket) -> None:
        """Forgets `sock`; call it before the socket is closed."""
        self._epoll.unregister(sock.fileno())
        del self._callbacks[sock.fileno()]

    def wait(self, seconds: float) -> int:
        """Waits up to `seconds`, to the millisecond, and handles what is ready; how many sockets were."""
        events = self._epoll.poll(seconds)
        for descriptor, mask in events:
            callback = self._callbacks.get(descriptor)
            if callback is not None:
                callback(mask)
        return len(events)

    def wait_until_due(self, seconds: float) -> None:
        """As `wait`, but to the microsecond: select, on the epoll itself, counts finer than epoll does."""
        if seconds > 0:
            select.select([self._epoll], [], [], seconds)
        self.wait(0)
