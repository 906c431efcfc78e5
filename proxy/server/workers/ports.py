"""The ports of several workers: the supervisor binds each port once, and all workers accept at its socket.

A connection waits in the socket's backlog while a worker is replaced, and any other worker may accept it.
With a socket for each worker (SO_REUSEPORT), the connections in the backlog of a killed worker would be
reset, and those in the backlog of a suspended one would wait.
"""

import asyncio
import json
import logging
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from proxy.config.ports import broker_ports
from proxy.config.settings import Listener, Settings
from proxy.errors import PortInUse
from proxy.server.listener.ports.broker_ports import bind, listen, listening, reject_connections
from proxy.server.listener.ports.early_ports import EarlyPorts, early_ports

log = logging.getLogger(__name__)
START_SECONDS: Final = 10.0
"""For how long a worker that serves no listener yet waits for the supervisor's reply."""
ANSWER_SECONDS: Final = 0.5
"""For how long a worker that serves clients waits for the reply; the clients wait as long. If the supervisor
is suspended, the reply comes later, and the next call finds it.
"""
MESSAGE_BYTES: Final = 4096
"""The most bytes of a question or a reply."""
REJECT_SECONDS: Final = 5.0
"""For how long connections wait in the backlogs of a listener's ports while no worker serves it. Then they
are rejected, so that clients try their other bootstrap servers; a single process waits as long (see
Listeners).
"""
TAKE: Final = "take"
SERVE: Final = "serve"
OK: Final = b"ok"

Place = tuple[str, int]
"""The host and the port of a socket."""
Question = tuple[str, str, int]
"""TAKE or SERVE, and the host and the port of a socket."""


class KeptPorts:
    """The supervisor's side: the sockets of all ports that workers have asked for.

    The ports of a listener for clients listen from the start. If no worker serves it for REJECT_SECONDS, they
    reject connections until one does. A worker says so before it calls itself ready, and the supervisor
    listens at all ports of the listener before it replies.
    """

    def __init__(self, settings: Settings, passed: EarlyPorts) -> None:
        """`passed` has the sockets of the service manager."""
        self._settings: Final = settings
        self._passed: Final = passed
        self._kept: Final[dict[Place, socket.socket]] = {}
        self._early: Final[dict[Place, socket.socket]] = {}
        """Ports of brokers that may exist, until a worker serves their listener."""
        self._serving: Final[dict[socket.socket, set[Place]]] = {}
        """By the supervisor's end for a worker: the bootstrap ports that this worker serves."""
        self._unserved_since: Final[dict[str, float]] = {}
        """The listeners that no worker serves."""
        self._rejecting: Final[set[str]] = set()

    def open(self) -> None:
        """Listen at the bootstrap ports, and at those of the first brokers: clients wait there for a worker.
        One that is rejected would wait for its backoff. Raises PortInUse for a bootstrap port.
        """
        for listener in self._settings.client_listeners:
            self.take(listener.bind, listener.bootstrap_port)
            if listener.reuse_port:
                continue  # Another process may serve the ports meanwhile.
            for port in early_ports(self._settings, listener):
                place = (listener.bind, port)
                if place not in self._kept and not self._passed.is_passed(*place):
                    with suppress(PortInUse):
                        self._early[place] = listening(*place)

    def take(self, host: str, port: int) -> socket.socket:
        """The socket of a port, bound at the first call. Raises PortInUse."""
        found = self._kept.get((host, port)) or self._early.pop((host, port), None)
        found = found or self._passed.take(host, port) or self._bound(host, port)
        self._kept[host, port] = found
        return found

    def review(self, now: float) -> None:
        """Reject connections at the ports of each listener that no worker has served for REJECT_SECONDS."""
        served = {place for places in self._serving.values() for place in places}
        for listener in self._settings.client_listeners:
            name = listener.name
            if (listener.bind, listener.bootstrap_port) in served:
                self._unserved_since.pop(name, None)
                continue
            since = self._unserved_since.setdefault(name, now)
            if now - since > REJECT_SECONDS and name not in self._rejecting:
                text = "%s: no worker serves clients: its ports reject connections until one does"
                log.warning(text, name, extra={"listener": name})
                self._reject(listener)

    def _reject(self, listener: Listener) -> None:
        """Reject connections, with those that wait.

        Sockets of the service manager go on listening: to shut them down would shut them down for it, too.
        """
        self._rejecting.add(listener.name)
        self._close_early(listener)
        for place, bound in self._of(listener, self._kept):
            if not self._passed.is_passed(*place):
                reject_connections(bound)

    def _serve(self, end: socket.socket, host: str, port: int) -> None:
        """Note that a worker serves the listener with this bootstrap port from now on, and listen at its
        ports. Raises PortInUse.
        """
        if (host, port) in self._kept:
            listen(self._kept[host, port])
        for listener in self._settings.client_listeners:
            if (listener.bind, listener.bootstrap_port) == (host, port):
                self._open(listener)
        self._serving[end].add((host, port))

    def _open(self, listener: Listener) -> None:
        """Listen at the ports of a listener that a worker serves. Raises PortInUse."""
        self._close_early(listener)
        if listener.name in self._rejecting:
            for _, bound in self._of(listener, self._kept):
                listen(bound)
            self._rejecting.discard(listener.name)
            text = "%s: a worker serves clients: its ports accept connections"
            log.info(text, listener.name, extra={"listener": listener.name})

    def _close_early(self, listener: Listener) -> None:
        """Close the ports that no broker has: connections that wait there are reset."""
        for place, bound in self._of(listener, self._early):
            bound.close()
            del self._early[place]

    def _of(
        self, listener: Listener, sockets: Mapping[Place, socket.socket]
    ) -> list[tuple[Place, socket.socket]]:
        ports = {listener.bootstrap_port, *broker_ports(self._settings, listener)}
        return [
            (place, bound)
            for place, bound in sockets.items()
            if place[0] == listener.bind and place[1] in ports
        ]

    def _bound(self, host: str, port: int) -> socket.socket:
        shared = any(listener.reuse_port for listener in self._at(host))
        if shared and any(listener.bootstrap_port == port for listener in self._at(host)):
            # Another proxy may serve the port: this one listens when a worker can serve clients.
            return bind(host, port, reuse_port=True)
        return listening(host, port, reuse_port=shared)

    def _at(self, host: str) -> Iterator[Listener]:
        return (listener for listener in self._settings.listeners if listener.bind == host)

    # Each worker

    def attach(self, end: socket.socket) -> None:
        """Answer the questions of a worker, which has the other end."""
        end.setblocking(False)
        self._serving[end] = set()
        asyncio.get_running_loop().add_reader(end, self._answer, end)

    def detach(self, end: socket.socket) -> None:
        """Stop answering the questions of a worker that has ended."""
        asyncio.get_running_loop().remove_reader(end)
        self._serving.pop(end, None)
        end.close()

    def _answer(self, end: socket.socket) -> None:
        try:
            what, host, port = json.loads(end.recv(MESSAGE_BYTES))
            try:
                if what == SERVE:
                    self._serve(end, host, port)
                    end.send(OK)
                else:
                    socket.send_fds(end, [OK], [self.take(host, port).fileno()])
            except PortInUse as error:
                end.send(str(error).encode())
        except (OSError, ValueError):
            # The worker has ended.
            asyncio.get_running_loop().remove_reader(end)

    def close(self) -> None:
        """Close the supervisor's sockets. A port listens until the last worker closes it."""
        for sockets in (self._kept, self._early):
            for bound in sockets.values():
                bound.close()
            sockets.clear()


class _Reply(NamedTuple):
    """A reply of the supervisor."""

    message: bytes
    descriptors: list[int]


class WorkerPorts(EarlyPorts):
    """A worker's side: asks the supervisor for each port, and waits for the socket.

    The worker's event loop does not run meanwhile. So it waits for a short time once it serves clients, asks
    each question once, and waits for nothing while an older question has no reply. Replies come in the order
    of the questions.
    """

    def __init__(self, end: socket.socket) -> None:
        super().__init__({})
        self._end: Final = end
        self._seconds = START_SECONDS
        self._asked: Final[list[Question]] = []
        """The questions without a reply, the oldest first."""
        self._replies: Final[dict[Question, _Reply]] = {}
        """The replies that nothing has taken yet."""

    def open(self, settings: Settings) -> None:
        """The supervisor has opened what listens early."""

    def take(self, host: str, port: int) -> socket.socket | None:
        """The socket of a port. Raises PortInUse with the supervisor's reason."""
        reply = self._ask((TAKE, host, port))
        if not reply.descriptors:
            raise PortInUse(reply.message.decode())
        found = socket.socket(fileno=reply.descriptors[0])
        found.setblocking(False)
        found.set_inheritable(False)
        return found

    def serve(self, host: str, port: int, bound: socket.socket) -> None:
        """Have the supervisor listen at the port, and at those of the listener's brokers."""
        reply = self._ask((SERVE, host, port))
        if reply.message != OK:
            raise PortInUse(reply.message.decode())
        self._seconds = ANSWER_SECONDS

    def _ask(self, question: Question) -> _Reply:
        """The supervisor's reply to this question, asked now or earlier. Raises PortInUse."""
        try:
            self._read(0.0)
            seconds = 0.0 if self._asked else self._seconds
            if question not in self._replies and question not in self._asked:
                self._end.send(json.dumps(question).encode())
                self._asked.append(question)
            if question not in self._replies:
                self._read(seconds)
        except OSError as error:
            raise PortInUse(_no_reply(question, str(error))) from error
        reply = self._replies.pop(question, None)
        if reply is None:
            raise PortInUse(_no_reply(question, "it is suspended, or busy"))
        return reply

    def _read(self, seconds: float) -> None:
        """Take the replies that have come; wait for the first one for at most `seconds`."""
        with suppress(TimeoutError, BlockingIOError):
            while self._asked:
                self._end.settimeout(seconds)
                message, descriptors, _, _ = socket.recv_fds(self._end, MESSAGE_BYTES, 1)
                self._replies[self._asked.pop(0)] = _Reply(message, descriptors)
                seconds = 0.0

    def is_passed(self, host: str, port: int) -> bool:
        """The supervisor holds every port: a worker must not shut its socket down."""
        return True


def _no_reply(question: Question, why: str) -> str:
    _, host, port = question
    return f"port {port} on {host}: the supervisor does not respond: {why}"
