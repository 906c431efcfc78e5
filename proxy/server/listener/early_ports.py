"""EarlyPorts: the ports for clients listen before the process can serve.

A start is mostly the import of modules. A client whose connection is rejected meanwhile tries again after a
backoff that doubles each time; a connection that waits in a port's backlog is served as soon as the process
can. The brokers are not known yet, so the ports of the lowest node ids listen.
"""

import socket
from typing import Final

from proxy.config.ports import BROKER_PORTS_AT_LEAST, broker_ports
from proxy.config.settings import Listener, Settings
from proxy.errors import PortInUse
from proxy.server.listener.ports import listening

EARLY_BROKERS: Final = 100
"""The most ports of brokers that listen early, if broker_port_count reserves so many."""


class EarlyPorts:
    """The listening sockets of ports that nothing serves yet."""

    def __init__(self) -> None:
        self._waiting: Final[dict[tuple[str, int], socket.socket]] = {}

    def open(self, settings: Settings) -> None:
        """Listen at the ports that are known from the configuration.

        Skips a port that cannot be bound; the process reports it when it needs the port.
        """
        for listener in settings.client_listeners:
            if listener.reuse_port:
                continue  # Another process may serve the ports meanwhile.
            for port in _known_ports(settings, listener):
                try:
                    self._waiting[listener.bind, port] = listening(listener.bind, port)
                except PortInUse:
                    continue

    def take(self, host: str, port: int) -> socket.socket | None:
        """Return the listening socket of a port, to serve it; None if the port does not listen early."""
        return self._waiting.pop((host, port), None)

    def close(self) -> None:
        """Close the ports that nothing serves: connections that wait there are reset."""
        for bound in self._waiting.values():
            bound.close()
        self._waiting.clear()


def _known_ports(settings: Settings, listener: Listener) -> list[int]:
    ports = [listener.bootstrap_port] if listener.bootstrap_port else []
    # A listener that may not ask for metadata serves a broker's port once a client has asked for it at the
    # bootstrap port. A client that waited at the broker's port would not do so.
    if listener.asks:
        reserved = listener.broker_port_count
        count = BROKER_PORTS_AT_LEAST if reserved is None else min(reserved, EARLY_BROKERS)
        ports += broker_ports(settings, listener)[:count]
    return ports
