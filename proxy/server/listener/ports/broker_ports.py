"""BrokerPorts: a listening port for each broker, bound as soon as the broker is known.

Binding is synchronous, so a port accepts connections before a response names it to a client. Connections wait
in the kernel's backlog until the event loop serves them.
"""

import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from proxy.config.advertised import LAST_PORT, advertised_address
from proxy.config.settings import Listener
from proxy.errors import PortInUse
from proxy.security.broker_hosts import ANY_HOST, BrokerHosts
from proxy.upstream.addresses import join_address
from proxy.wire.addresses import Address, Addresses, BrokerAddress

log = logging.getLogger(__name__)
BACKLOG: Final = 1024
"""Connections that may wait to be accepted: after a restart all clients reconnect at once."""
NO_PORT: Final = 0
"""The port that is advertised for a broker without one: clients fail to connect, and never bypass the proxy.
"""


_WHY: Final = {
    errno.EADDRINUSE: "it is in use; end the process that has it (`ss -ltnp` names it), or set another port",
    errno.EADDRNOTAVAIL: "this machine has no such address; set bind to one that it has, or to 0.0.0.0",
    errno.EACCES: "that takes the right to ports below 1024 (CAP_NET_BIND_SERVICE); set a higher one",
}


def bind(host: str, port: int, setting: str = "", *, reuse_port: bool = False) -> socket.socket:
    """Bind a TCP socket. Raises PortInUse with the port, the reason, and what to do.

    `setting` names the configuration key of the port, for the error. `reuse_port`: whether other processes of
    the same user may bind the port too, if they also say so.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:  # too many open files
        raise _port_in_use(error, host, port, setting) from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise _port_in_use(error, host, port, setting) from error
    bound.setblocking(False)
    return bound


def listen(bound: socket.socket) -> None:
    """Listen at a bound socket. Raises PortInUse: while a bound socket does not listen, another process may
    listen at its port.
    """
    try:
        bound.listen(BACKLOG)
    except OSError as error:
        raise _port_in_use(error, *bound.getsockname()[:2]) from error


def reject_connections(bound: socket.socket) -> None:
    """Stop listening at a socket, and reset the connections that wait there; it may listen again.

    On Linux, the socket stays bound. Elsewhere this fails, and clients wait.
    """
    # Shutting down a socket that does not listen fails, and yet each connection that it accepts later is at
    # its end from the start.
    if bound.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        with suppress(OSError):
            bound.shutdown(socket.SHUT_RDWR)


def listening(host: str, port: int, setting: str = "", *, reuse_port: bool = False) -> socket.socket:
    """Bind a socket as bind() does, and listen at it. Raises PortInUse."""
    bound = bind(host, port, setting, reuse_port=reuse_port)
    try:
        listen(bound)
    except PortInUse as error:
        bound.close()
        raise PortInUse(f"{setting}{error}") from error
    return bound


def _port_in_use(error: OSError, host: str, port: int, setting: str = "") -> PortInUse:
    why = _WHY.get(error.errno or 0, error.strerror)
    return PortInUse(f"{setting}port {port} on {host} cannot be bound: {why}")


class BrokerPorts:
    """The addresses at which clients reach the brokers, and the brokers' own addresses.

    Brokers become known by advertised(), which is called for each broker in metadata and in clients'
    responses.
    """

    def __init__(
        self,
        listener: Listener,
        allowed: range,
        bound: Callable[[int, socket.socket], None],
        early: Callable[[str, int], socket.socket | None] = lambda host, port: None,
        hosts: BrokerHosts = ANY_HOST,
    ) -> None:
        """`bound` is called with the node id and the listening socket of each broker that gets a port.
        `early` returns the socket of a port that listens already (see EarlyPorts), None for any other.
        """
        self._listener: Final = listener
        self._allowed: Final = allowed
        self._bound: Final = bound
        self._early: Final = early
        self._hosts: Final = hosts
        self.addresses: Final = Addresses()
        """The addresses at which clients reach the brokers, for relays to read."""
        self._advertised: Final[dict[int, Address]] = {}
        self._upstream: Final[dict[int, tuple[str, int]]] = {}
        self.without_port: Final[dict[int, str]] = {}
        """By node id, why a broker has no port."""

    def advertised(self, node_id: int, host: str, port: int) -> Address:
        """Return the proxy's address for a broker, whose own is `host`:`port`; bind its port if need be.

        A broker that is named at an address that it may not have keeps the one that it had.
        """
        if not self._hosts.allows(host, port):
            kept = self._advertised.get(node_id, Address(self._listener.advertised_host, NO_PORT))
            self.addresses.put(BrokerAddress(node_id, host, port), kept)
            return kept
        if self._upstream.get(node_id) != (host, port):
            self._upstream[node_id] = (host, port)
            own = join_address(host, port)
            about = {"listener": self._listener.name, "broker": node_id}
            log.info("%s: address of broker %d is %s", self._listener.name, node_id, own, extra=about)
        address = self._advertised.get(node_id)
        if address is None:
            address = self._address(node_id)
            self._advertised[node_id] = address
        self.addresses.put(BrokerAddress(node_id, host, port), address)
        return address

    def upstream(self, node_id: int) -> tuple[str, int] | None:
        """The broker's own host and port, as last seen; None for an unknown broker."""
        return self._upstream.get(node_id)

    @property
    def known(self) -> set[int]:
        """The node ids of all known brokers."""
        return set(self._upstream)

    def retry(self) -> None:
        """Try again to bind the ports that could not be bound."""
        for node_id in list(self.without_port):
            self._advertised[node_id] = address = self._address(node_id)
            self.addresses.put(BrokerAddress(node_id, *self._upstream[node_id]), address)

    def _address(self, node_id: int) -> Address:
        listener = self._listener
        wanted = listener.broker_port_base + node_id if listener.broker_port_base else 0
        if wanted and wanted not in self._allowed:
            last = self._allowed[-1] if self._allowed else listener.broker_port_base
            why = f"its port would be {wanted}, but brokers' ports end at {last}; raise broker_port_count"
            return self._no_port(node_id, why)
        if advertised_address(listener, node_id, wanted)[1] > LAST_PORT:
            why = f"its advertised port would be above {LAST_PORT}; lower advertised_broker_port_base"
            return self._no_port(node_id, why)
        try:
            bound = self._early(listener.bind, wanted) or listening(
                listener.bind, wanted, reuse_port=listener.reuse_port
            )
        except PortInUse as error:
            return self._no_port(node_id, str(error))
        self.without_port.pop(node_id, None)
        # Once it is handed over it may be closed: the listener accepts no more.
        port: int = bound.getsockname()[1]
        self._bound(node_id, bound)
        return Address(*advertised_address(listener, node_id, port))

    def node_behind(self, server_name: str) -> int | None:
        """The broker that the host in a TLS hello stands for; None for any. Raises UnknownHost (see
        SniHosts).
        """
        return None

    def _no_port(self, node_id: int, why: str) -> Address:
        if self.without_port.get(node_id) != why:
            about = {"listener": self._listener.name, "broker": node_id}
            text = "%s: clients cannot reach broker %d: %s"
            log.error(text, self._listener.name, node_id, why, extra=about)
        self.without_port[node_id] = why
        return Address(self._listener.advertised_host, NO_PORT)
