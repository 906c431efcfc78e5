"""BootstrapRouter: which broker serves a connection to the bootstrap port."""

from collections.abc import Sequence
from typing import Final

from proxy.quota.engine import ALL_BROKERS
from proxy.server.listener.ports import BrokerPorts
from proxy.upstream.refresh import ClusterRefresh

STAND_IN: Final = ALL_BROKERS - 1
"""Node id of the first of upstream.bootstrap as long as nobody knows which broker it is; the others are below
it."""


class BootstrapRouter:
    """Brokers take turns: those of the cluster's view; where the proxy may not ask the cluster, those that
    clients' answers have told of; and before there was one, the addresses of upstream.bootstrap.
    """

    def __init__(
        self, bootstrap: Sequence[tuple[str, int]], cluster: ClusterRefresh, ports: BrokerPorts
    ) -> None:
        self._bootstrap: Final = tuple(bootstrap)
        self._cluster: Final = cluster
        self._ports: Final = ports
        self._doubted: Final[set[int]] = set()
        self._turn = 0

    def next(self) -> int:
        """A node id, for address()."""
        self._turn += 1
        nodes = sorted(self._cluster.view.nodes) or sorted(self._ports.known - self._doubted)
        if nodes:
            return nodes[self._turn % len(nodes)]
        self._doubted.clear()
        return STAND_IN - self._turn % len(self._bootstrap)

    def address(self, node_id: int) -> tuple[str, int] | None:
        """Where the broker is."""
        if node_id <= STAND_IN:
            return self._bootstrap[STAND_IN - node_id]
        return self._ports.upstream(node_id)

    def doubt(self, node_id: int) -> None:
        """The broker cannot be reached."""
        self._doubted.add(node_id)
