"""SniHosts: one port for all brokers; clients name a broker's host in their TLS hello."""

import socket
from collections.abc import Callable
from typing import Final

from proxy.config.settings import Listener
from proxy.security.settings import NODE_ID, Sni
from proxy.server.listener.ports import BrokerPorts
from proxy.wire.addresses import Address


class UnknownHost(ValueError):
    """A client asks for a host that is none of the listener's; the message says which, and what there is."""


class SniHosts(BrokerPorts):
    """Brokers are at their host names, all at the same port."""

    def __init__(
        self,
        listener: Listener,
        sni: Sni,
        learned: Callable[[int, str, int], None],
        port: Callable[[], int],
    ) -> None:
        """`port` is the one that was bound."""
        super().__init__(listener, range(0), learned, _never_bound)
        self._sni: Final = sni
        self._port: Final = port
        before, _, after = sni.broker_host.lower().partition(NODE_ID)
        self._before: Final = before
        self._after: Final = after

    def _give_port(self, node_id: int) -> Address:
        return Address(self._sni.broker_host.replace(NODE_ID, str(node_id)), self._port())

    def node_behind(self, server_name: str) -> int | None:
        name = server_name.lower()
        if name == self._sni.bootstrap_host.lower():
            return None
        middle = name.removeprefix(self._before).removesuffix(self._after)
        if middle.isascii() and middle.isdigit() and name == f"{self._before}{int(middle)}{self._after}":
            node_id = int(middle)
            if node_id in self.known:
                return node_id
            raise UnknownHost(f"it asks for {server_name}, and there is no broker {node_id}")
        asked = f"it asks for {server_name!r}" if server_name else "its TLS hello names no host"
        raise UnknownHost(
            f"{asked}; this listener has {self._sni.bootstrap_host} and {self._sni.broker_host}"
        )


def _never_bound(node_id: int, bound: socket.socket) -> None:
    """No broker has a port of its own."""
