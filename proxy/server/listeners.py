"""Listeners: all gateways of one process."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from proxy.admin.dispatch import AdminApis
from proxy.config.settings import Settings
from proxy.quota.engines import QuotaEngines
from proxy.relay.budgets.group_members import GroupMembers
from proxy.relay.budgets.large_frames import LargeFrames
from proxy.relay.budgets.list_turns import ListTurns
from proxy.relay.budgets.read_turns import ReadTurns
from proxy.relay.close_reasons import DRAIN_TIMEOUT
from proxy.relay.inflight import InFlightRoom
from proxy.server.connection.drain import DRAIN_POLL_SECONDS
from proxy.server.listener.accept.admission import Balance, LimitedAdmission
from proxy.server.listener.brokers.quota_cluster_feed import QuotaClusterFeed
from proxy.server.listener.client_gateway import ClientListener, client_listener
from proxy.server.listener.discovery import ClusterDiscovery
from proxy.server.listener.gateway import Gateway
from proxy.server.listener.listener_context import ListenerContext
from proxy.server.listener.ports.early_ports import EarlyPorts
from proxy.server.listener.replication_gateway import replication_gateway
from proxy.server.listener.served import until_served
from proxy.server.system.descriptors import allow_connections
from proxy.tasks import Tasks
from proxy.upstream.cluster_access import ClusterAccess

log = logging.getLogger(__name__)
REPLICATION_WAITS_SECONDS: Final = 5.0
"""How long followers wait for the quotas at startup. A follower that fetches nothing for 30 s
(replica.lag.time.max.ms) leaves the in-sync replicas."""
EARLY_SECONDS: Final = 5.0
"""How long clients wait at ports that listen early: several times as long as a start takes on a busy machine,
and not so long that a client with other bootstrap servers gives up its request."""
CLOSING_SECONDS: Final = 1.0
"""The seconds of a shutdown that are kept for closing the connections."""


class Listeners:
    """Builds, starts and drains the listeners of the settings."""

    def __init__(
        self,
        *,
        settings: Settings,
        engines: QuotaEngines,
        admin: AdminApis,
        early: EarlyPorts,
        tasks: Tasks,
        balance: Balance | None = None,
    ) -> None:
        """Bind the bootstrap ports that do not listen early. Raises SettingsError and PortInUse. `balance`
        distributes clients among the workers of a host.
        """
        self._early: Final = early
        self._balance: Final = balance
        limits = settings.limits
        self.max_connections: Final = allow_connections(limits.max_connections)
        """How many client connections the process serves at the same time."""
        self._admission: Final = LimitedAdmission(
            self.max_connections, limits.max_connections_per_ip, balance
        )
        next_turn = asyncio.get_running_loop().call_soon
        self.list_turns: Final = ListTurns(limits.max_list_bytes_in_flight, next_turn)
        shared = ListenerContext(
            settings=settings,
            engines=engines,
            admission=self._admission,
            admin=admin,
            large_frames=LargeFrames(),
            list_turns=self.list_turns,
            group_members=GroupMembers(limits.max_group_member_bytes),
            request_turns=ReadTurns(next_turn),
            response_turns=ReadTurns(next_turn),
            in_flight_room=InFlightRoom(),
            early=early,
            tasks=tasks,
        )
        self._clients: Final = _client_listeners(shared)
        asking = self._clients[_first_that_asks(settings)]
        self.feed: Final[QuotaClusterFeed] = asking.feed
        """Gives the quotas what the metadata of the cluster says."""
        self._cluster: Final = asking.discovery.cluster
        self._threads: Final = asking.threads
        self._tasks: Final = tasks
        self.replication: Final[list[Gateway]] = [
            replication_gateway(shared, listener, self._cluster)
            for listener in settings.listeners
            if listener.replication
        ]
        # Followers fetch topics by id, and a partition whose topic's name is unknown cannot be omitted.
        self._cluster.want_topics = bool(self.replication)

    @property
    def admitted(self) -> int:
        """How many client connections count against `max_connections`."""
        return self._admission.total

    @property
    def clients(self) -> list[Gateway]:
        return [listener.gateway for listener in self._clients]

    @property
    def all(self) -> list[Gateway]:
        return self.clients + self.replication

    @property
    def cluster_access(self) -> ClusterAccess:
        """How the process connects to the cluster as a client: as the first listener that may ask it."""
        return self._cluster.cluster_access

    @property
    def cluster_ids(self) -> dict[str, str]:
        """The id of the cluster that each listener for clients serves, by the listener's name; empty while it
        is not known.
        """
        return {each.gateway.listener.name: each.discovery.cluster.view.cluster_id for each in self._clients}

    @property
    def asking_clusters(self) -> list[ClusterDiscovery]:
        """The clusters whose brokers the proxy may ask."""
        return [listener.discovery for listener in self._clients if listener.gateway.listener.asks]

    async def start_clients(self, quotas_loaded: Callable[[], Awaitable[object]]) -> None:
        """Serve clients once their quotas are known. Meanwhile, learn the brokers."""
        for listener in self._clients:
            listener.discovery.learn()
        await quotas_loaded()
        if self._cluster.may_ask:
            self._tasks.start(self._threads.run())
        for gateway in self.clients:
            gateway.start()

    async def end_early(self) -> None:
        """Close the ports that listen early and belong to no broker, once clients are served.

        After EARLY_SECONDS the other ports reject connections too, until clients are served.
        """
        await until_served(lambda: not any(each.problems() for each in self.clients), EARLY_SECONDS)
        self._early.close()
        for gateway in self.clients:
            # To shut down a socket of the service manager would shut it down for the next process, too.
            if not self._early.is_passed(gateway.listener.bind, gateway.listener.bootstrap_port):
                gateway.stop_waiting()

    async def start_replication(self, quotas_loaded: Callable[[], Awaitable[object]]) -> None:
        """Serve followers once their quotas, and the names of their topics, are known.

        They wait only REPLICATION_WAITS_SECONDS, because the cluster may need them to make this known. They
        do not wait until other processes know this one: its reports are readable when followers have them.
        """
        if self.replication:
            with suppress(TimeoutError):
                async with asyncio.timeout(REPLICATION_WAITS_SECONDS):
                    await quotas_loaded()
                    await self._cluster.responded.wait()
        for gateway in self.replication:
            gateway.start()

    def stop_listening(self) -> None:
        """Accept no more connections; open ones go on."""
        self._early.close()
        for gateway in self.all:
            gateway.stop_listening()

    async def drain(self, seconds: float) -> None:
        """Close all connections within `seconds`, with the responses that are due delivered.

        Clients are served as before until no slow response is due, so that one slow request does not cut off
        the others. Then the proxy accepts no more connections, delivers what is due and closes, which takes
        a fraction of a second. Followers go last: a Produce request with acks=all gets its response when they
        have fetched its records.
        """
        time = asyncio.get_running_loop().time
        if self._balance is not None:
            self._balance.drain()
        started = time()
        count = sum(gateway.connection_count for gateway in self.all)
        log.info("draining %d connections", count)
        serve_until = started + seconds - min(CLOSING_SECONDS, seconds / 2)
        while time() < serve_until and self._slow(time(), started):  # noqa: ASYNC110
            await asyncio.sleep(DRAIN_POLL_SECONDS)
        for gateways in (self.clients, self.replication):
            self._early.close()
            for gateway in gateways:
                gateway.stop_listening()
            while any(gateway.connections.open or gateway.connections.closing for gateway in gateways):
                now = time()
                for gateway in gateways:
                    if now >= started + seconds:
                        gateway.connections.abort()
                    else:
                        gateway.connections.drain(now)
                await asyncio.sleep(DRAIN_POLL_SECONDS)
        aborted = sum(gateway.closed.get(DRAIN_TIMEOUT, 0) for gateway in self.all)
        log.info("drained in %.1f s; aborted %d of %d connections", time() - started, aborted, count)

    def _slow(self, now: float, since: float) -> bool:
        return any(gateway.connections.slow(now, since) for gateway in self.clients)

    def close(self) -> None:
        """Close the proxy's own connections to the brokers."""
        for gateway in self.all:
            gateway.close()


def _client_listeners(shared: ListenerContext) -> list[ClientListener]:
    """Build the listeners for clients, in the order of the settings.

    The quotas, and listeners that may not ask their own brokers, know the cluster by the first that may.
    """
    listeners = shared.settings.client_listeners
    first = _first_that_asks(shared.settings)
    asking = client_listener(shared, listeners[first], names_from=None, feeds_quotas=True)
    cluster = asking.discovery.cluster
    return [
        asking
        if place == first
        else client_listener(
            shared, listener, names_from=None if listener.asks else cluster, feeds_quotas=False
        )
        for place, listener in enumerate(listeners)
    ]


def _first_that_asks(settings: Settings) -> int:
    for place, listener in enumerate(settings.client_listeners):
        if listener.asks:
            return place
    return 0
