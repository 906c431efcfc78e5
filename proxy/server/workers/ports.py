"""The ports of several workers: the supervisor binds each port once, and all workers accept at its socket.

A connection waits in the socket's backlog while a worker is replaced, and any other worker may accept it.
With a socket for each worker (SO_REUSEPORT), the connections in the backlog of a killed worker would be
reset, and those in the backlog of a suspended one would wait.
"""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from proxy.config.settings import Listener, Settings
from proxy.errors import PortInUse
from proxy.server.listener.early_ports import EarlyPorts
from proxy.server.listener.ports import bind, listen, listening

ANSWER_SECONDS: Final = 10.0
MESSAGE_BYTES: Final = 4096


class KeptPorts:
    """The supervisor's side: the sockets of all ports that workers have asked for."""

    def __init__(self, settings: Settings, passed: EarlyPorts) -> None:
        """`passed` has the sockets of the service manager."""
        self._settings: Final = settings
        self._passed: Final = passed
        self._kept: Final[dict[tuple[str, int], socket.socket]] = {}
        self._rejecting = False

    def open(self) -> None:
        """Listen at the bootstrap ports, so that clients wait for the first worker. Raises PortInUse."""
        for listener in self._settings.client_listeners:
            self.take(listener.bind, listener.bootstrap_port)

    def take(self, host: str, port: int) -> socket.socket:
        """The socket of a port, bound at the first call. Raises PortInUse."""
        found = self._kept.get((host, port)) or self._passed.take(host, port) or self._bound(host, port)
        self._kept[host, port] = found
        if self._rejecting and port not in (listener.bootstrap_port for listener in self._at(host)):
            # A worker listens at the bootstrap port when it can serve clients, and serves this one at once.
            listen(found)
        return found

    def reject(self) -> None:
        """Reject connections, with those that wait, until listen_again(): no worker accepts them.

        Sockets of the service manager go on listening: to shut them down would shut them down for it, too.
        """
        self._rejecting = True
        for (host, port), bound in self._kept.items():
            if not self._passed.is_passed(host, port):
                # On Linux the socket stays bound. Elsewhere, and if it does not listen, this fails.
                with suppress(OSError):
                    bound.shutdown(socket.SHUT_RDWR)

    def listen_again(self) -> None:
        """Listen at all ports: a worker accepts connections again."""
        self._rejecting = False
        for bound in self._kept.values():
            with suppress(PortInUse):
                listen(bound)

    def _bound(self, host: str, port: int) -> socket.socket:
        shared = any(listener.reuse_port for listener in self._at(host))
        if shared and any(listener.bootstrap_port == port for listener in self._at(host)):
            # Another proxy may serve the port: this one listens when a worker can serve clients.
            return bind(host, port, reuse_port=True)
        return listening(host, port, reuse_port=shared)

    def _at(self, host: str) -> Iterator[Listener]:
        return (listener for listener in self._settings.listeners if listener.bind == host)

    def answer(self, end: socket.socket) -> None:
        """Answer the question of one worker, whose socket is readable."""
        try:
            host, port = json.loads(end.recv(MESSAGE_BYTES))
            try:
                found = self.take(host, port)
            except PortInUse as error:
                end.send(str(error).encode())
            else:
                socket.send_fds(end, [b"ok"], [found.fileno()])
        except (OSError, ValueError):
            # The worker has ended.
            asyncio.get_running_loop().remove_reader(end)

    def close(self) -> None:
        """Close the supervisor's sockets. A port listens until the last worker closes it."""
        for bound in self._kept.values():
            bound.close()
        self._kept.clear()


class WorkerPorts(EarlyPorts):
    """A worker's side: asks the supervisor for each port, and waits for the socket."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__({})
        end.settimeout(ANSWER_SECONDS)
        self._end: Final = end

    def open(self, settings: Settings) -> None:
        """The supervisor has opened what listens early."""

    def take(self, host: str, port: int) -> socket.socket | None:
        """The socket of a port. Raises PortInUse with the supervisor's reason."""
        try:
            self._end.send(json.dumps([host, port]).encode())
            message, descriptors, _, _ = socket.recv_fds(self._end, MESSAGE_BYTES, 1)
        except OSError as error:
            raise PortInUse(f"port {port} on {host}: the supervisor does not respond: {error}") from error
        if not descriptors:
            raise PortInUse(message.decode())
        found = socket.socket(fileno=descriptors[0])
        found.setblocking(False)
        found.set_inheritable(False)
        return found

    def is_passed(self, host: str, port: int) -> bool:
        """The supervisor holds every port: a worker must not shut its socket down."""
        return True
