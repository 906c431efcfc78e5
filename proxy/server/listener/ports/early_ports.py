"""EarlyPorts: the ports for clients listen before the process can serve.

A start is mostly the import of modules. A client whose connection is rejected meanwhile tries again after a
backoff that doubles each time; a connection that waits in a port's backlog is served as soon as the process
can. The brokers are not known yet, so the ports of the lowest node ids listen.

A socket that the service manager has passed is served like the others. Only the service manager can close its
port.
"""

import socket
from collections.abc import Mapping
from typing import Final

from proxy.config.ports import BROKER_PORTS_AT_LEAST, broker_ports
from proxy.config.settings import Listener, Settings
from proxy.errors import PortInUse
from proxy.server.listener.ports.broker_ports import listen, listening
from proxy.server.listener.ports.passed_sockets import unused

EARLY_BROKERS: Final = 100
"""The most ports of brokers that listen early, if broker_port_count reserves so many."""


class EarlyPorts:
    """The listening sockets of ports that nothing serves yet."""

    def __init__(self, passed: Mapping[tuple[str, int], socket.socket]) -> None:
        """`passed` are the sockets of the service manager (see passed_sockets).

        Raises SettingsError for two at the same port of [::] and of 0.0.0.0, because a listener serves one.
        """
        self._waiting: Final[dict[tuple[str, int], socket.socket]] = {}
        self._passed: Final[dict[tuple[str, int], socket.socket]] = {}
        for (host, port), each in passed.items():
            if self._passed.setdefault(_key(host, port), each) is not each:
                raise unused(host, port)
        self._passed_ports: Final = frozenset(self._passed)

    def open(self, settings: Settings) -> None:
        """Listen at the ports that are known from the configuration.

        Skips a port that cannot be bound; the process reports it when it needs the port. Raises SettingsError
        as check_passed() does.
        """
        self.check_passed(settings)
        for listener in settings.client_listeners:
            if listener.reuse_port:
                continue  # Another process may serve the ports meanwhile.
            for port in early_ports(settings, listener):
                if self.is_passed(listener.bind, port):
                    continue
                try:
                    self._waiting[listener.bind, port] = listening(listener.bind, port)
                except PortInUse:
                    continue

    def check_passed(self, settings: Settings) -> None:
        """Raises SettingsError for a passed socket that belongs to no listener."""
        served = {
            _key(listener.bind, port)
            for listener in settings.listeners
            for port in _ports(listener, broker_ports(settings, listener))
        }
        for host, port in self._passed_ports - served:
            raise unused(host, port)

    def take(self, host: str, port: int) -> socket.socket | None:
        """Return the listening socket of a port, to serve it; None if the port does not listen early."""
        return self._waiting.pop((host, port), None) or self._passed.pop(_key(host, port), None)

    def serve(self, host: str, port: int, bound: socket.socket) -> None:
        """Listen at a bootstrap port, which the process serves from now on. Raises PortInUse."""
        listen(bound)

    def is_passed(self, host: str, port: int) -> bool:
        """Whether the service manager holds the port's socket: clients then wait until it is served."""
        return _key(host, port) in self._passed_ports

    def close(self) -> None:
        """Close the ports that nothing serves: connections that wait there are reset.

        Passed sockets stay open: their brokers may join later.
        """
        for bound in self._waiting.values():
            bound.close()
        self._waiting.clear()

    def close_passed(self) -> None:
        """Close the passed sockets of this process that nothing serves; the service manager's stay open."""
        for bound in self._passed.values():
            bound.close()
        self._passed.clear()


def early_ports(settings: Settings, listener: Listener) -> list[int]:
    """The ports that listen before the brokers are known."""
    # A listener that may not ask for metadata serves a broker's port once a client has asked for it at the
    # bootstrap port. A client that waited at the broker's port would not do so.
    if not listener.asks:
        return _ports(listener, range(0))
    reserved = listener.broker_port_count
    count = BROKER_PORTS_AT_LEAST if reserved is None else min(reserved, EARLY_BROKERS)
    return _ports(listener, broker_ports(settings, listener)[:count])


def _ports(listener: Listener, brokers: range) -> list[int]:
    has_bootstrap = listener.bootstrap_port and not listener.replication
    return [listener.bootstrap_port, *brokers] if has_bootstrap else list(brokers)


def _key(host: str, port: int) -> tuple[str, int]:
    # A unit's `ListenStream=9092` listens at [::], for IPv4 too.
    return {"localhost": "127.0.0.1", "0.0.0.0": "::"}.get(host, host), port  # noqa: S104 - not bound
