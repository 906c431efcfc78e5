"""Gateway: one listener with its ports, its cluster and its connections."""

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, cast

from proxy.admin.authority import ClientRights
from proxy.admin.authorizer import AuthorizerWatch
from proxy.admin.dispatch import AdminApis
from proxy.admin.mutations.mutations import Broker, ControllerMutations
from proxy.config.ports import broker_ports
from proxy.config.settings import ConnectionLimits, Listener, Settings
from proxy.errors import KeyPath, UpstreamUnavailable
from proxy.quota.cluster_view import ClusterView
from proxy.quota.engine import QuotaEngines
from proxy.quota.identity import ANONYMOUS
from proxy.quota.networks import one_spelling
from proxy.quota.usage import UsageLedger
from proxy.relay.close_reasons import (
    CLIENT_PROTOCOL_ERROR,
    HANDSHAKE_TIMEOUT,
    IDLE,
    TOO_MANY_CONNECTIONS,
    RelayError,
)
from proxy.relay.intercepted import Intercepted
from proxy.relay.relay import Relay
from proxy.relay.traffic import Traffic
from proxy.security.access import Access
from proxy.security.tls import server_tls
from proxy.server.connection.connection import Connection
from proxy.server.listener.admission import Admission
from proxy.server.listener.bootstrap_router import BootstrapRouter
from proxy.server.listener.client_identification import ClientIdentification, NotServed
from proxy.server.listener.ports import BACKLOG, BrokerPorts, bind
from proxy.server.listener.sni_hosts import SniHosts
from proxy.server.listener.tls_server import TLS_HANDSHAKE_FAILED, TlsServer
from proxy.tasks import Tasks
from proxy.upstream.partition_counts import PartitionCounts
from proxy.upstream.refresh import ClusterRefresh
from proxy.upstream.topic_names import ClusterTopicNames
from proxy.wire.errors import ProtocolError
from proxy.wire.sasl_apis import SASL_HANDSHAKE

log = logging.getLogger(__name__)
ANSWER_FAILED: Final = "answer_failed"
"""Why a connection ends whose request the proxy could not answer; the log has the error."""
SWEEP_SECONDS: Final = 1.0
LOG_REJECTIONS_EVERY_SECONDS: Final = 10.0


class Gateway:
    """Serves one listener of the settings."""

    def __init__(
        self,
        settings: Settings,
        listener: Listener,
        engines: QuotaEngines,
        admission: Admission,
        admin: AdminApis,
        mutations: ControllerMutations,
        tasks: Tasks,
        cluster: ClusterRefresh | None = None,
    ) -> None:
        """`cluster`: another gateway's, where this one does not ask itself."""
        self.listener: Final = listener
        # What brokers fetch of each other is no tenant's use of the cluster.
        of_clients = not listener.replication
        self.usage: Final = UsageLedger() if of_clients and settings.usage is not None else None
        """What each client uses; None where nobody wants to know."""
        self.traffic: Final = Traffic(of_clients and settings.metrics.topic_partitions, self.usage)
        self.connections: Final[set[Connection]] = set()
        self.leaving: Final[set[Connection]] = set()
        """Connections that are over, with sockets that are not closed yet: what was written is on its way."""
        self.closed: Final[dict[str, int]] = {}
        """Connections that have ended, by reason."""
        at: KeyPath = ("listeners", settings.listeners.index(listener))
        self.access: Final = Access(listener.upstream.tls, listener.upstream.sasl, (*at, "upstream"))
        self.tls: Final = None if listener.tls is None else server_tls(listener.tls, (*at, "tls"))
        self.cluster: Final = cluster or ClusterRefresh(
            listener.name,
            listener.upstream.addresses,
            settings.limits.connect_seconds,
            self._cluster_changed,
            self._cluster_seen,
            self.access,
            listener.asks,
        )
        self.known_by = self.cluster
        """What tells topics' names; another gateway's where this one does not ask."""
        self.ports: Final = self._broker_ports(settings)
        seconds = settings.limits.connect_seconds
        self._authorizer: Final = AuthorizerWatch(
            listener.name, self.cluster, self.access, seconds, admin.authority
        )
        self._bootstrap_router: Final = BootstrapRouter(listener.upstream.addresses, self.cluster, self.ports)
        self._client_identification: Final = ClientIdentification(
            listener, self.ports, self._bootstrap_router
        )
        self.feeds_quotas = False
        """Whether the quotas know the cluster by this gateway."""
        self._limits: Final[ConnectionLimits] = settings.limits
        self._engines: Final = engines
        self._admission: Final = admission
        self._admin: Final = admin
        self._mutations: Final = mutations
        self._counts: Final = PartitionCounts(
            self.ports.upstream, settings.limits.connect_seconds, self.access
        )
        self._tasks: Final = tasks
        self._loop: Final = asyncio.get_running_loop()
        self._topic_names = ClusterTopicNames(self.cluster, self._loop.time)
        self._bootstrap = self._bind_bootstrap()
        self._servers: Final[list[asyncio.Server | TlsServer]] = []
        self._listening = False
        self._wanted_items = False
        self._draining = False
        self._told_of_logins = False
        self._rejected_at: Final[dict[str, float]] = {}
        """By reason: when the log has said so last."""

    # What metrics show

    @property
    def name(self) -> str:
        return self.listener.name

    @property
    def between_brokers(self) -> bool:
        return self.listener.replication

    @property
    def topic_names(self) -> ClusterRefresh:
        return self.known_by

    @property
    def connection_count(self) -> int:
        return len(self.connections)

    @property
    def brokers_without_port(self) -> int:
        return len(self.ports.without_port)

    # Starting and stopping

    def _broker_ports(self, settings: Settings) -> BrokerPorts:
        listener = self.listener
        if listener.sni is not None:
            return SniHosts(listener, listener.sni, self._learned, lambda: self.bootstrap_port)
        return BrokerPorts(listener, broker_ports(settings, listener), self._learned, self._serve_broker)

    @property
    def bootstrap_port(self) -> int:
        """The port that was bound."""
        assert self._bootstrap is not None, "asked of a listener that has one"
        port: int = self._bootstrap.getsockname()[1]
        return port

    def _bind_bootstrap(self) -> socket.socket | None:
        listener = self.listener
        return bind(listener.bind, listener.bootstrap_port, f"listener {listener.name}: bootstrap_port: ")

    def start(self) -> None:
        """Ask the cluster, and serve as soon as it has answered."""
        if not self.listener.asks:
            log.warning(
                "%s: without upstream.sasl the proxy cannot ask this cluster which brokers it has; each gets "
                "its port when a client's answer first tells of it",
                self.listener.name,
            )
        self._tasks.start(self.cluster.run())
        if self.listener.asks:
            self._tasks.start(self._authorizer.run())
        self._tasks.start(self._sweep())

    def warnings(self) -> list[str]:
        """What is wrong and keeps no client from being served."""
        found = [self._authorizer.warning, self._unwatched_logins]
        return [warning for warning in found if warning]

    @property
    def _unwatched_logins(self) -> str:
        listener = self.listener
        if listener.principal is not None or listener.replication:
            return ""
        if not self.traffic.requests[SASL_HANDSHAKE.key]:
            return ""
        return (
            f"{listener.name}: clients log in here, and are all {ANONYMOUS} to the quotas; "
            "the listener wants principal: {from: sasl}"
        )

    def problems(self) -> list[str]:
        """Why clients cannot be served right now; empty when they can."""
        problems = []
        if self.cluster.problem:
            problems.append(f"{self.listener.name}: {self.cluster.problem}")
        elif not self._listening:
            problems.append(f"{self.listener.name}: not listening yet")
        return problems

    def _cluster_changed(self, view: ClusterView) -> None:
        for node in view.nodes.values():
            self.ports.advertised(node.node_id, node.host, node.port)
        bootstrap = self._bootstrap
        if bootstrap is not None and not self._listening and not self._draining:
            self._listening = True
            bootstrap.listen(BACKLOG)
            self._serve(None, bootstrap)
            name, host, port = self.listener.name, self.listener.bind, bootstrap.getsockname()[1]
            log.info("%s: serving at %s:%d for %s", name, host, port, view.cluster_id)

    def _cluster_seen(self, view: ClusterView) -> None:
        if self.feeds_quotas:
            self._engines.see_cluster(view, self._loop.time())
            self.want_partitions()

    def use_cluster_of(self, cluster: ClusterRefresh) -> None:
        """Have topics' names told by another gateway's cluster."""
        self.known_by = cluster
        self._topic_names = ClusterTopicNames(cluster, self._loop.time)

    def want_partitions(self) -> None:
        """Have the cluster's partitions in its view where a quota wants them, and at least all topics' names:
        the first requests for a topic whose name is not known would pass.
        """
        self.cluster.want_partitions = self._engines.wants_partitions
        wants_items = self._engines.wants_items
        if wants_items and not self._wanted_items:
            self.cluster.want_all_names()
        self._wanted_items = wants_items

    def _learned(self, node_id: int, host: str, port: int) -> None:
        log.info("%s: broker %d is at %s:%d", self.listener.name, node_id, host, port)

    def _serve_broker(self, node_id: int, bound: socket.socket) -> None:
        if self._draining:
            bound.close()
            return
        log.info("%s: broker %d is served at port %d", self.listener.name, node_id, bound.getsockname()[1])
        self._serve(node_id, bound)

    def _serve(self, node_id: int | None, bound: socket.socket) -> None:
        self._tasks.start(self._accept(node_id, bound))

    async def _accept(self, node_id: int | None, bound: socket.socket) -> None:
        factory = partial(Connection, self, node_id, self._loop, self.tls is not None)
        protocol = cast("Callable[[], asyncio.Protocol]", factory)
        if self.tls is not None:
            tls_server = TlsServer(self, self.tls, bound, self._limits.handshake_seconds, self._tasks)
            self._servers.append(tls_server)
            tls_server.start(node_id, protocol)
            return
        server = await self._loop.create_server(protocol, sock=bound, backlog=BACKLOG)
        self._servers.append(server)

    def stop_listening(self) -> None:
        """Take no more connections; those that are here go on."""
        self._draining = True
        for server in self._servers:
            server.close()
        if self._bootstrap is not None:
            self._bootstrap.close()

    def close(self) -> None:
        self.cluster.close()
        self._counts.close()

    def nodes(self) -> list[int]:
        """The brokers that are known, by node id."""
        return sorted(self.cluster.view.nodes)

    async def topic_ids(self, node_id: int, names: Sequence[str]) -> dict[str, bytes | None]:
        """What a broker says of topics; see PartitionCounts.topic_ids()."""
        return await self._counts.topic_ids(node_id, names)

    # What connections ask for

    def opened(self, connection: Connection, address: str) -> Relay | None:
        if not connection.admitted:
            rejection = self._admission.enter(address)
            if rejection:
                self._reject(TOO_MANY_CONNECTIONS, connection.peer, rejection)
                return None
        try:
            principal, connection.node_id = self._client_identification.receive(connection)
        except NotServed as error:
            self._admission.leave(address)
            self._reject(error.reason, connection.peer, str(error))
            return None
        self.connections.add(connection)
        now = self._loop.time()
        engine = self._engines.engine(connection.node_id, now)
        wait = 0.0 if connection.admitted else engine.connect(one_spelling(address), now)
        if wait > 0.0:
            connection.serve_at(now + wait)
        max_frame_bytes = self._limits.max_frame_bytes
        return Relay(
            engine,
            self.ports,
            self.traffic,
            principal,
            address,
            max_frame_bytes,
            self._admin.api_keys,
            self._topic_names,
            node_id=connection.node_id,
            login=self._client_identification.login,
        )

    def admit(self, node_id: int | None, address: str, peer: str) -> float | None:
        rejection = self._admission.enter(address)
        if rejection:
            self._reject(TOO_MANY_CONNECTIONS, peer, rejection)
            return None
        now = self._loop.time()
        engine = self._engines.engine(self._bootstrap_router.next() if node_id is None else node_id, now)
        return engine.connect(one_spelling(address), now)

    def failed(self, address: str, peer: str, why: str) -> None:
        self._admission.leave(address)
        if why:
            self._reject(TLS_HANDSHAKE_FAILED, peer, why)

    def start_connecting(self, connection: Connection, broker: asyncio.Protocol) -> None:
        self._tasks.start(connection.reach_broker(broker))

    def start_answering(self, connection: Connection, request: Intercepted) -> None:
        self._tasks.start(self._answer(connection, request))

    async def _answer(self, connection: Connection, request: Intercepted) -> None:
        try:
            if request.header.api_key in self._admin.api_keys:
                reply = await self._admin.answer(request, self._behind(connection, request))
            else:
                reply = await self._mutations.answer(request, self._behind(connection, request))
            connection.answer(request, reply.frame, reply.throttle_seconds, reply.hold)
        except ProtocolError as error:
            connection.fail(RelayError(CLIENT_PROTOCOL_ERROR, str(error)))
        except RelayError as error:
            connection.fail(error)
        except BaseException:
            # Whatever it is, the client does not wait for an answer that will not come.
            connection.close(ANSWER_FAILED)
            raise

    def _behind(self, connection: Connection, request: Intercepted) -> Broker:
        """The broker to which a client has sent a request."""
        assert connection.node_id is not None, "chosen when the connection was opened"
        ask = partial(connection.ask, request)
        who = request.exchange.client
        rights = ClientRights(
            self._admin.authority,
            ask,
            who,
            request.header.correlation_id,
            known_to_broker=self.listener.known_to_brokers,
        )
        return Broker(self.cluster.view.cluster_id, connection.node_id, self._counts, ask, rights)

    async def connect(self, connection: Connection, broker: asyncio.Protocol) -> None:
        node_id = connection.node_id
        address = self._bootstrap_router.address(node_id) if node_id is not None else None
        if node_id is None or address is None:
            raise UpstreamUnavailable(f"broker {node_id} is not known any more")
        host, port = address
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                context = self.access.ssl_context
                await self._loop.create_connection(lambda: broker, host, port, ssl=context)
        except OSError as error:
            self.cluster.poke()
            self._bootstrap_router.doubt(node_id)
            why = str(error) or f"no answer in {self._limits.connect_seconds:g} s"
            raise UpstreamUnavailable(
                f"broker {node_id} at {host}:{port} cannot be reached: {why}"
            ) from error

    def ended(self, connection: Connection, reason: str) -> None:
        self.connections.discard(connection)
        self.leaving.add(connection)
        self._admission.leave(connection.address)
        self._count_closed(reason)

    def left(self, connection: Connection) -> None:
        self.leaving.discard(connection)

    def _count_closed(self, reason: str) -> None:
        self.closed[reason] = self.closed.get(reason, 0) + 1

    def _reject(self, reason: str, peer: str, why: str) -> None:
        """Count a client that is not served, and say so in the log, at times."""
        self._count_closed(reason)
        now = time.monotonic()
        if now - self._rejected_at.get(reason, -LOG_REJECTIONS_EVERY_SECONDS) >= LOG_REJECTIONS_EVERY_SECONDS:
            self._rejected_at[reason] = now
            log.warning("%s: %s rejected: %s", self.listener.name, peer, why)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.close_idle(self._loop.time())

    def close_idle(self, now: float) -> None:
        """End connections on which nothing happens, and see whether ports have become free."""
        self.ports.retry()
        if not self._told_of_logins and self._unwatched_logins:
            self._told_of_logins = True
            log.warning("%s", self._unwatched_logins)
        for connection in list(self.connections):
            silent = now - connection.heard_at
            if (
                not connection.first_request_seen
                and now - connection.opened_at > self._limits.handshake_seconds
            ):
                connection.give_up(HANDSHAKE_TIMEOUT, "the client's time for a first request was over")
            elif silent > self._limits.idle_seconds and not connection.waits_for_broker:
                connection.give_up(IDLE, "the client fell silent")
