"""BootstrapRouter: chooses the broker for each connection to the bootstrap port."""

from collections.abc import Callable, Sequence
from typing import Final

from proxy.quota.engines import ALL_BROKERS
from proxy.server.listener.ports.broker_ports import BrokerPorts
from proxy.upstream.refresh import ClusterRefresh

STAND_IN: Final = ALL_BROKERS - 1
"""The node id that stands for the first address of upstream.bootstrap until its broker is known; the
following addresses have the ids below."""
UNREACHABLE_SECONDS: Final = 5.0
"""How long the bootstrap port avoids a broker after a failed connection. A broker that has died stays in the
metadata for longer (broker.session.timeout.ms, 9 s by default); one that was restarted is back by then.
"""


class BootstrapRouter:
    """Round robin over the brokers of the cluster's metadata. Without metadata, over the brokers that
    clients' responses have named, and until there is one, over the addresses of upstream.bootstrap.
    """

    def __init__(
        self,
        bootstrap: Sequence[tuple[str, int]],
        cluster: ClusterRefresh,
        ports: BrokerPorts,
        time: Callable[[], float],
    ) -> None:
        self._bootstrap: Final = tuple(bootstrap)
        self._cluster: Final = cluster
        self._ports: Final = ports
        self._time: Final = time
        self._avoided_until: Final[dict[int, float]] = {}
        """By the node id of a broker that could not be reached."""
        self._turn = 0

    def next(self) -> int:
        """Return the node id of the next broker; address() knows it. If all are unreachable, it is one of
        them.
        """
        self._turn += 1
        nodes = sorted(self._cluster.view.nodes)
        reachable = self._reachable(nodes or sorted(self._ports.known))
        if reachable:
            return reachable[self._turn % len(reachable)]
        if nodes:
            return nodes[self._turn % len(nodes)]
        self._avoided_until.clear()
        return STAND_IN - self._turn % len(self._bootstrap)

    def other(self) -> int | None:
        """Return the node id of the next broker that can be reached as far as is known; None for none."""
        nodes = sorted(self._cluster.view.nodes) or sorted(self._ports.known)
        stand_ins = [STAND_IN - place for place in range(len(self._bootstrap))]
        reachable = self._reachable(nodes) or self._reachable(stand_ins)
        if not reachable:
            return None
        self._turn += 1
        return reachable[self._turn % len(reachable)]

    def _reachable(self, nodes: list[int]) -> list[int]:
        """These brokers without those that are avoided now."""
        avoided = self._avoided_until
        if not avoided:
            return nodes
        now = self._time()
        for node_id in [node_id for node_id, until in avoided.items() if until <= now]:
            del avoided[node_id]
        return [node_id for node_id in nodes if node_id not in avoided]

    def address(self, node_id: int) -> tuple[str, int] | None:
        """Return the broker's host and port; None if they are no longer known."""
        if node_id <= STAND_IN:
            return self._bootstrap[STAND_IN - node_id]
        return self._ports.upstream(node_id)

    def mark_unreachable(self, node_id: int) -> None:
        """Avoid a broker for UNREACHABLE_SECONDS, as long as others can be reached."""
        self._avoided_until[node_id] = self._time() + UNREACHABLE_SECONDS
