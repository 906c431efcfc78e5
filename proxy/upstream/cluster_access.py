"""ClusterAccess: where a cluster is, and how the proxy connects to it as a client."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from proxy.security.access import PLAINTEXT, Access
from proxy.upstream.addresses import is_address, join_address
from proxy.upstream.broker_connection import BrokerConnection, Check, connect_to_any

FAILED_AT_MOST: Final = 1000
"""Addresses of brokers that failed. If there are more, all are forgotten: a hostile broker may name any."""


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
    failed: set[tuple[str, int]] = field(default_factory=set, compare=False)
    """The brokers that did not respond when they were last asked, whichever part of the proxy has asked."""

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The brokers to try, in this order. Those of the latest metadata come first: they may have replaced
        all brokers of `bootstrap` while the proxy runs. Those that failed come last: one that hangs accepts
        connections, and would cost each part of the proxy a timeout.
        """
        found = dict.fromkeys([*self.known(), *self.bootstrap])
        return sorted(found, key=self.failed.__contains__)

    async def connect(
        self, addresses: Iterable[tuple[str, int]], check: Check | None = None
    ) -> BrokerConnection:
        """Connect to the first of these brokers that accepts within `connect_seconds` and passes the check;
        note which have failed. Raises UpstreamUnavailable.
        """
        if len(self.failed) > FAILED_AT_MOST:
            self.failed.clear()
        return await connect_to_any(addresses, self.access, self.connect_seconds, check, self.failed)

    def note_failure(self, address: tuple[str, int] | None) -> None:
        """Note that a broker, if it is known which, has not responded."""
        if address is not None:
            self.failed.add(address)

    def for_aiokafka(self) -> dict[str, Any]:
        """The same, as keyword arguments for aiokafka's clients. These try the addresses in random order, and
        wait for each, so they get only those that have not failed, if there are any.
        """
        addresses = [address for address in self.addresses if address not in self.failed] or self.addresses
        servers = [join_address(host, port) for host, port in addresses]
        # aiokafka raises ValueError for a host that cannot be one, and a broker may name any.
        valid = [server for server in servers if is_address(server)]
        return {"bootstrap_servers": valid, **self.access.for_aiokafka()}
