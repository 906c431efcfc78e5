"""BrokerDiscovery: how a listener learns the brokers that it serves."""

import logging
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from proxy.admin.authorizer import AuthorizerWatch
from proxy.quota.cluster_view import ClusterView
from proxy.server.listener.ports.broker_ports import BrokerPorts
from proxy.server.listener.sockets import ListeningSockets
from proxy.tasks import Tasks
from proxy.upstream.addresses import split_address
from proxy.upstream.partition_counts import PartitionCounts
from proxy.upstream.refresh import ClusterRefresh

log = logging.getLogger(__name__)


class BrokerDiscovery(Protocol):
    """Binds the brokers' ports as it learns of the brokers."""

    def start(self) -> None:
        """Start to learn brokers; the listener serves clients from then on, or as soon as it knows enough."""

    def problems(self) -> list[str]:
        """Why clients cannot be served now; empty if they can."""

    def warnings(self) -> list[str]:
        """The problems that do not keep clients from being served."""

    def close(self) -> None:
        """Close the proxy's own connections to the brokers."""


class ClusterDiscovery:
    """Brokers as the cluster's metadata names them. The bootstrap port opens when there is metadata, and
    start() was called.
    """

    def __init__(
        self,
        *,
        listener: str,
        asks: bool,
        cluster: ClusterRefresh,
        authorizer: AuthorizerWatch,
        counts: PartitionCounts,
        ports: BrokerPorts,
        sockets: ListeningSockets,
        tasks: Tasks,
    ) -> None:
        """`asks`: whether brokers respond to requests of the proxy's own."""
        self.cluster: Final = cluster
        self._listener: Final = listener
        self._asks: Final = asks
        self._authorizer: Final = authorizer
        self._counts: Final = counts
        self._ports: Final = ports
        self._sockets: Final = sockets
        self._tasks: Final = tasks
        self._started = False

    def learn(self) -> None:
        """Request metadata from now on. No port is served before start()."""
        self._tasks.start(self.cluster.run())

    def start(self) -> None:
        self._started = True
        if not self.cluster.problem:
            self.cluster_changed(self.cluster.view)
        if self._asks:
            self._tasks.start(self._authorizer.run())
            return
        log.warning(
            "%s: without upstream.sasl the proxy cannot request metadata; each broker gets its port when a "
            "response to a client first names the broker",
            self._listener,
        )

    def cluster_changed(self, view: ClusterView) -> None:
        """Bind a port for each broker of the view; called with each view whose brokers are not the last
        one's. Before start() nothing happens.
        """
        if not self._started:
            return
        for node in view.nodes.values():
            self._ports.advertised(node.node_id, node.host, node.port)
        self._sockets.open_bootstrap()

    def problems(self) -> list[str]:
        if self.cluster.problem:
            return [f"{self._listener}: {self.cluster.problem}"]
        if self._sockets.bootstrap_open:
            return []
        return [f"{self._listener}: {self._sockets.bootstrap_problem or 'not listening yet'}"]

    def warnings(self) -> list[str]:
        return [self._authorizer.warning] if self._authorizer.warning else []

    def nodes(self) -> list[int]:
        """The node ids of the brokers in the latest metadata."""
        return sorted(self.cluster.view.nodes)

    async def topic_ids(self, node_id: int, names: Sequence[str]) -> Mapping[str, bytes | None]:
        """Ask a broker for topics' ids; see PartitionCounts.topic_ids()."""
        return await self._counts.topic_ids(node_id, names)

    def close(self) -> None:
        self.cluster.close()
        self._counts.close()


class ConfiguredBrokers:
    """Brokers as upstream.brokers lists them; their ports open at once."""

    def __init__(self, *, listener: str, brokers: Mapping[int, str], ports: BrokerPorts) -> None:
        """`brokers` has HOST:PORT by node id."""
        self._listener: Final = listener
        self._brokers: Final = brokers
        self._ports: Final = ports

    def start(self) -> None:
        for node_id, address in self._brokers.items():
            self._ports.advertised(node_id, *split_address(address))

    def problems(self) -> list[str]:
        """A broker without a port drops out of its peers' in-sync replicas, so the listener is not ready."""
        return [f"{self._listener}: {why}" for why in self._ports.without_port.values()]

    def warnings(self) -> list[str]:
        return []

    def close(self) -> None:
        pass
