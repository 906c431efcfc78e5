"""ClusterAccess: where a cluster is, and how the proxy connects to it as a client."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from proxy.security.access import PLAINTEXT, Access
from proxy.upstream.addresses import is_address, join_address


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How a client of the cluster connects: the brokers' addresses, the timeout, TLS and the login."""

    bootstrap: tuple[tuple[str, int], ...]
    """Brokers as (host, port), as the settings list them."""
    connect_seconds: float
    """The timeout of connecting to one broker, with TLS and login."""
    access: Access = PLAINTEXT
    known: Callable[[], Iterable[tuple[str, int]]] = tuple
    """Returns the brokers of the latest metadata, as far as there is any."""

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The brokers to try, in this order. Those of the latest metadata come first: they may have replaced
        all brokers of `bootstrap` while the proxy runs.
        """
        return list(dict.fromkeys([*self.known(), *self.bootstrap]))

    def for_aiokafka(self) -> dict[str, Any]:
        """The same, as keyword arguments for aiokafka's clients."""
        servers = [join_address(host, port) for host, port in self.addresses]
        # aiokafka raises ValueError for a host that cannot be one, and a broker may name any.
        valid = [server for server in servers if is_address(server)]
        return {"bootstrap_servers": valid, **self.access.for_aiokafka()}
