"""SniHosts: one port for all brokers; the host in a client's TLS hello (SNI) tells which one it wants."""

import socket
from typing import Final

from proxy.config.settings import Listener
from proxy.security.broker_hosts import ANY_HOST, BrokerHosts
from proxy.security.settings import NODE_ID, Sni
from proxy.server.listener.ports.broker_ports import BrokerPorts
from proxy.wire.addresses import Address


class UnknownHost(ValueError):
    """A TLS hello that names no host of the listener; the message has the host and those that there are."""


class SniHosts(BrokerPorts):
    """Each broker has a host name of its own, and all have the same port."""

    def __init__(self, listener: Listener, sni: Sni, port: int, hosts: BrokerHosts = ANY_HOST) -> None:
        super().__init__(listener, range(0), _never_bound, hosts=hosts)
        self._sni: Final = sni
        self._port: Final = port
        before, _, after = sni.broker_host.lower().partition(NODE_ID)
        self._before: Final = before
        self._after: Final = after

    def _address(self, node_id: int) -> Address:
        return Address(
            self._sni.broker_host.replace(NODE_ID, str(node_id)), self._sni.advertised_port or self._port
        )

    def node_behind(self, server_name: str) -> int | None:
        name = server_name.lower()
        if name == self._sni.bootstrap_host.lower():
            return None
        middle = name.removeprefix(self._before).removesuffix(self._after)
        if middle.isascii() and middle.isdigit() and name == f"{self._before}{int(middle)}{self._after}":
            node_id = int(middle)
            if node_id in self.known:
                return node_id
            raise UnknownHost(f"its TLS hello names {server_name}, but there is no broker {node_id}")
        hello = f"its TLS hello names {server_name!r}" if server_name else "its TLS hello names no host"
        raise UnknownHost(
            f"{hello}; the hosts of this listener are {self._sni.bootstrap_host} and {self._sni.broker_host}"
        )


def _never_bound(node_id: int, bound: socket.socket) -> None:
    """Take no socket: no broker has a port of its own."""
