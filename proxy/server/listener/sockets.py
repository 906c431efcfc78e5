"""ListeningSockets: the bound ports of one listener, and what accepts connections at them."""

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from proxy.errors import PortInUse
from proxy.security.tls import TlsFiles
from proxy.server.connection.connection import Connection
from proxy.server.connection.origin import Origin
from proxy.server.listener.accept.acceptor import Acceptor, Opener, OriginReader
from proxy.server.listener.accept.handshake_turns import HandshakeTurns
from proxy.server.listener.accept.plain_opener import PlainOpener
from proxy.server.listener.accept.tls_opener import TlsOpener
from proxy.server.listener.connections import ListenerConnections
from proxy.server.listener.ports.broker_ports import listen, reject_connections
from proxy.tasks import Tasks
from proxy.upstream.addresses import join_address

log = logging.getLogger(__name__)
RETRY_SECONDS: Final = 1.0
"""The pause after the bootstrap port could not be opened."""


class ListeningSockets:
    """Accepts connections until close(), with TLS or without."""

    def __init__(
        self,
        *,
        listener: str,
        bootstrap: socket.socket | None,
        tls: TlsFiles | None,
        handshake_seconds: float,
        connections: ListenerConnections,
        tasks: Tasks,
        origins: OriginReader | None = None,
        open_port: Callable[[socket.socket], None] = listen,
    ) -> None:
        """`bootstrap` is bound, and may listen already; None if the listener has no bootstrap port. `origins`
        reads where connections come from; None if no load balancer states it. `open_port` listens at the
        bootstrap port, and raises PortInUse.
        """
        self.bootstrap_open = False
        """Whether clients can connect to the bootstrap port."""
        self.bootstrap_problem = ""
        """Why the bootstrap port cannot be opened; empty if it can."""
        self._listener: Final = listener
        self._about: Final = {"listener": listener}
        self._bootstrap: Final = bootstrap
        self._tls: Final = tls
        self._handshake_seconds: Final = handshake_seconds
        self._connections: Final = connections
        self._tasks: Final = tasks
        self._origins: Final = origins
        self._open_port: Final = open_port
        self._acceptors: Final[list[Acceptor]] = []
        self._turns: HandshakeTurns | None = None
        """The turns of the handshakes at all ports; None before the first port with TLS is served."""
        self._retry: asyncio.TimerHandle | None = None
        self._closed = False

    def open_bootstrap(self) -> None:
        """Serve the bootstrap port, as soon as no other process listens at it; later calls do nothing."""
        bootstrap = self._bootstrap
        if bootstrap is None or self.bootstrap_open or self._closed:
            return
        try:
            self._open_port(bootstrap)
        except PortInUse as error:
            if not self.bootstrap_problem:
                log.error("%s: clients cannot connect: %s", self._listener, error, extra=self._about)
            self.bootstrap_problem = str(error)
            if self._retry is not None:
                self._retry.cancel()
            self._retry = asyncio.get_running_loop().call_later(RETRY_SECONDS, self.open_bootstrap)
            return
        self.bootstrap_open = True
        self.bootstrap_problem = ""
        self._serve(None, bootstrap)
        at = join_address(*bootstrap.getsockname()[:2])
        log.info("%s: bootstrap port is %s", self._listener, at, extra=self._about)

    def stop_waiting(self) -> None:
        """Reject connections at the bootstrap port, with those that wait there, until it is served."""
        if self._bootstrap is not None and not self.bootstrap_open and not self._closed:
            reject_connections(self._bootstrap)

    def serve_broker(self, node_id: int, bound: socket.socket) -> None:
        """Serve a broker's own port, which listens already."""
        if self._closed:
            bound.close()
            return
        port = bound.getsockname()[1]
        log.info("%s: port of broker %d is %d", self._listener, node_id, port, extra=self._about)
        self._serve(node_id, bound)

    def _serve(self, node_id: int | None, bound: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        factory = partial(Connection, self._connections, node_id, loop, self._tls is not None)
        make = cast("Callable[[Origin], asyncio.Protocol]", factory)
        opener: Opener
        if self._tls is None:
            opener = PlainOpener(make, self._connections.abandoned)
        else:
            if self._turns is None:
                self._turns = HandshakeTurns(loop)
            opener = TlsOpener(
                self._connections,
                self._tls,
                node_id=node_id,
                make=make,
                seconds=self._handshake_seconds,
                turns=self._turns,
            )
        acceptor = Acceptor(bound, self._connections, opener, self._tasks, self._origins)
        self._acceptors.append(acceptor)
        acceptor.start()

    def warnings(self) -> list[str]:
        """What is wrong with accepting connections."""
        if any(acceptor.waits for acceptor in self._acceptors):
            return [f"{self._listener}: new connections wait until others end: limits.max_connections"]
        return []

    def close(self) -> None:
        """Accept no more connections; open ones go on."""
        self._closed = True
        for acceptor in self._acceptors:
            acceptor.close()
        if self._bootstrap is not None:
            self._bootstrap.close()
