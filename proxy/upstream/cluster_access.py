"""ClusterAccess: where a cluster is, and how the proxy connects to it as a client."""

from dataclasses import dataclass
from typing import Any

from proxy.security.access import PLAINTEXT, Access
from proxy.upstream.addresses import join_address


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How a client of the cluster connects: the brokers' addresses, the timeout, TLS and the login."""

    bootstrap: tuple[tuple[str, int], ...]
    """Brokers as (host, port), tried in order."""
    connect_seconds: float
    """The timeout of connecting to one broker, with TLS and login."""
    access: Access = PLAINTEXT

    def for_aiokafka(self) -> dict[str, Any]:
        """The same, as keyword arguments for aiokafka's clients."""
        servers = [join_address(host, port) for host, port in self.bootstrap]
        return {"bootstrap_servers": servers, **self.access.for_aiokafka()}
