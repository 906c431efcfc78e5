"""BootstrapRouter: chooses the broker for each connection to the bootstrap port."""

from collections.abc import Sequence
from typing import Final

from proxy.quota.engine import ALL_BROKERS
from proxy.server.listener.ports import BrokerPorts
from proxy.upstream.refresh import ClusterRefresh

STAND_IN: Final = ALL_BROKERS - 1
"""The node id that stands for the first address of upstream.bootstrap until its broker is known; the
following addresses have the ids below."""


class BootstrapRouter:
    """Round robin over the brokers of the cluster's metadata. Without metadata, over the brokers that
    clients' responses have named, and until there is one, over the addresses of upstream.bootstrap.
    """

    def __init__(
        self, bootstrap: Sequence[tuple[str, int]], cluster: ClusterRefresh, ports: BrokerPorts
    ) -> None:
        self._bootstrap: Final = tuple(bootstrap)
        self._cluster: Final = cluster
        self._ports: Final = ports
        self._unreachable: Final[set[int]] = set()
        self._turn = 0

    def next(self) -> int:
        """Return the node id of the next broker; address() knows it."""
        self._turn += 1
        nodes = sorted(self._cluster.view.nodes) or sorted(self._ports.known - self._unreachable)
        if nodes:
            return nodes[self._turn % len(nodes)]
        self._unreachable.clear()
        return STAND_IN - self._turn % len(self._bootstrap)

    def address(self, node_id: int) -> tuple[str, int] | None:
        """Return the broker's host and port; None if they are no longer known."""
        if node_id <= STAND_IN:
            return self._bootstrap[STAND_IN - node_id]
        return self._ports.upstream(node_id)

    def mark_unreachable(self, node_id: int) -> None:
        """Skip the broker, unless metadata lists it, until all others are unreachable too."""
        self._unreachable.add(node_id)
