"""Gateway: one listener, with its ports, its connections and what it knows of its brokers."""

from collections.abc import Iterator, Sequence
from typing import Final

from proxy.config.settings import ConnectionLimits, Listener
from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Traffic
from proxy.server.connection.pauses import PAUSE_REASONS
from proxy.server.listener.discovery import BrokerDiscovery
from proxy.server.listener.ports.broker_ports import BrokerPorts
from proxy.server.listener.serving import Serving, TransportSecurity
from proxy.server.listener.sweep import Sweep
from proxy.server.listener.traffic_watch import TrafficWatch
from proxy.tasks import Tasks
from proxy.upstream.refresh import ClusterRefresh


class Gateway:
    """Starts, stops and drains the parts of a listener; see client_gateway and replication_gateway.

    Fulfils MeteredListener.
    """

    def __init__(
        self,
        *,
        listener: Listener,
        traffic: Traffic,
        security: TransportSecurity,
        ports: BrokerPorts,
        serving: Serving,
        discovery: BrokerDiscovery,
        watch: TrafficWatch,
        limits: ConnectionLimits,
        topic_names: ClusterRefresh,
        tasks: Tasks,
    ) -> None:
        self.listener: Final = listener
        self.traffic: Final = traffic
        self.access: Final = security.access
        self.tls: Final = security.tls
        self.connections: Final = serving.connections
        self.topic_names: Final = topic_names
        self._ports: Final = ports
        self._closed: Final = serving.closed
        self._rejected: Final = security.rejected
        self._dialer: Final = serving.dialer
        self._sockets: Final = serving.sockets
        self._discovery: Final = discovery
        self._watch: Final = watch
        self._sweep: Final = Sweep(
            connections=serving.connections,
            ports=ports,
            watch=watch,
            closed=serving.closed,
            rejected=security.rejected,
            limits=limits,
        )
        self._tasks: Final = tasks

    # What the metrics show

    @property
    def name(self) -> str:
        return self.listener.name

    @property
    def between_brokers(self) -> bool:
        return self.listener.replication

    @property
    def usage(self) -> UsageLedger | None:
        return self.traffic.usage

    @property
    def closed(self) -> dict[str, int]:
        return self._closed.by_reason

    @property
    def connection_count(self) -> int:
        return len(self.connections.open)

    @property
    def pause_reasons(self) -> Sequence[str]:
        return PAUSE_REASONS

    def pauses(self) -> Iterator[str]:
        return self.connections.pauses()

    @property
    def broker_connects(self) -> dict[tuple[int, str], int]:
        return self._dialer.connects

    @property
    def brokers_without_port(self) -> int:
        return len(self._ports.without_port)

    @property
    def rejected_addresses(self) -> int:
        return self._rejected.count

    # What the readiness page shows

    def problems(self) -> list[str]:
        """Why clients cannot be served now; empty if they can."""
        return self._discovery.problems()

    def warnings(self) -> list[str]:
        """The problems that do not keep clients from being served."""
        return self._discovery.warnings() + self._watch.warnings() + self._sockets.warnings()

    # From start to end

    def start(self) -> None:
        """Learn the brokers, and serve clients."""
        self._discovery.start()
        self._tasks.start(self._sweep.run())

    def stop_waiting(self) -> None:
        """Reject connections until clients are served; see EarlyPorts."""
        self._sockets.stop_waiting()

    def stop_listening(self) -> None:
        """Accept no more connections; open ones go on."""
        self._sockets.close()

    def close(self) -> None:
        """Close the proxy's own connections to the brokers."""
        self._discovery.close()
        self._closed.flush_log()
        self._rejected.flush_log()
