"""Builds the gateway of a listener for clients."""

import asyncio
import socket
from collections.abc import Callable
from typing import NamedTuple

from proxy.admin.authorizer import AuthorizerWatch
from proxy.admin.dispatch import APIS, AdminApis
from proxy.config.ports import broker_ports
from proxy.config.settings import Listener, Settings
from proxy.errors import KeyPath
from proxy.quota.engine import QuotaEngines
from proxy.quota.usage import UsageLedger
from proxy.relay.traffic import Traffic
from proxy.security.access import Access
from proxy.security.tls import server_tls
from proxy.server.listener.admission import Admission
from proxy.server.listener.bootstrap_router import BootstrapRouter
from proxy.server.listener.client_identification import ClientIdentification
from proxy.server.listener.closed_connections import ClosedConnections
from proxy.server.listener.connections import ListenerConnections
from proxy.server.listener.dialer import BrokerDialer
from proxy.server.listener.discovery import ClusterDiscovery
from proxy.server.listener.gateway import Gateway
from proxy.server.listener.local_responses import LocalResponses
from proxy.server.listener.ports import BrokerPorts, bind
from proxy.server.listener.quota_cluster_feed import QuotaClusterFeed
from proxy.server.listener.relays import ClientRelays
from proxy.server.listener.sni_hosts import SniHosts
from proxy.server.listener.sockets import ListeningSockets
from proxy.server.listener.sweep import Sweep
from proxy.server.listener.traffic_watch import UnidentifiedLogins
from proxy.tasks import Tasks
from proxy.upstream.partition_counts import PartitionCounts
from proxy.upstream.refresh import ClusterRefresh
from proxy.upstream.topic_names import ClusterTopicNames


class ClientListener(NamedTuple):
    """A gateway for clients, with those of its parts that the process uses."""

    gateway: Gateway
    discovery: ClusterDiscovery
    feed: QuotaClusterFeed


def client_listener(
    *,
    settings: Settings,
    listener: Listener,
    engines: QuotaEngines,
    admission: Admission,
    admin: AdminApis,
    names_from: ClusterRefresh | None,
    feeds_quotas: bool,
    tasks: Tasks,
) -> ClientListener:
    """Build a listener for clients and bind its bootstrap port. Raises SettingsError and PortInUse.

    `names_from`: the cluster that topics' names are requested from; None for the listener's own.
    `feeds_quotas`: whether the quotas see the cluster through this listener.
    """
    at: KeyPath = ("listeners", settings.listeners.index(listener))
    limits = settings.limits
    time = asyncio.get_running_loop().time
    access = Access(listener.upstream.tls, listener.upstream.sasl, (*at, "upstream"))
    tls = None if listener.tls is None else server_tls(listener.tls, (*at, "tls"))
    usage = None if settings.usage is None else UsageLedger()
    traffic = Traffic(settings.metrics.topic_partitions, usage)
    bootstrap = bind(listener.bind, listener.bootstrap_port, f"listener {listener.name}: bootstrap_port: ")
    # The cluster and the ports call parts that are built below; nothing calls them before start().
    cluster = ClusterRefresh(
        listener.name,
        listener.upstream.addresses,
        limits.connect_seconds,
        lambda view: discovery.cluster_changed(view),
        lambda view: feed.cluster_seen(view) if feeds_quotas else None,
        access,
        listener.asks,
    )
    ports = _broker_ports(
        settings, listener, bootstrap, lambda node, bound: sockets.serve_broker(node, bound)
    )
    names = names_from or cluster
    topic_names = ClusterTopicNames(names, asyncio.get_running_loop().call_later)
    counts = PartitionCounts(ports.upstream, limits.connect_seconds, access)
    router = BootstrapRouter(listener.upstream.addresses, cluster, ports)
    identification = ClientIdentification(listener, ports, router)
    closed = ClosedConnections(listener.name)
    connections = ListenerConnections(
        admission=admission,
        identification=identification,
        router=router,
        relays=ClientRelays(
            engines=engines,
            addresses=ports.addresses,
            traffic=traffic,
            max_frame_bytes=limits.max_frame_bytes,
            apis=APIS,
            intercepted_api_keys=admin.api_keys,
            topic_names=topic_names,
            login=identification.login,
            protected=admin.protected,
        ),
        ports=ports,
        topic_names=topic_names,
        dialer=BrokerDialer(
            router=router, cluster=cluster, access=access, connect_seconds=limits.connect_seconds
        ),
        local_responses=LocalResponses(
            admin=admin,
            cluster=cluster,
            counts=counts,
            known_to_brokers=listener.known_to_brokers,
        ),
        closed=closed,
        tasks=tasks,
        time=time,
    )
    sockets = ListeningSockets(
        listener=listener.name,
        bootstrap=bootstrap,
        tls=tls,
        handshake_seconds=limits.handshake_seconds,
        connections=connections,
        tasks=tasks,
    )
    discovery = ClusterDiscovery(
        listener=listener.name,
        asks=listener.asks,
        cluster=cluster,
        authorizer=AuthorizerWatch(listener.name, cluster, access, limits.connect_seconds, admin.authority),
        counts=counts,
        ports=ports,
        sockets=sockets,
        tasks=tasks,
    )
    feed = QuotaClusterFeed(engines=engines, cluster=cluster, time=time)
    watch = UnidentifiedLogins(listener, traffic)
    gateway = Gateway(
        listener=listener,
        traffic=traffic,
        access=access,
        tls=tls,
        ports=ports,
        connections=connections,
        closed=closed,
        sockets=sockets,
        discovery=discovery,
        watch=watch,
        sweep=Sweep(connections=connections, ports=ports, watch=watch, closed=closed, limits=limits),
        topic_names=names,
        tasks=tasks,
    )
    return ClientListener(gateway, discovery, feed)


def _broker_ports(
    settings: Settings,
    listener: Listener,
    bootstrap: socket.socket,
    bound: Callable[[int, socket.socket], None],
) -> BrokerPorts:
    if listener.sni is not None:
        return SniHosts(listener, listener.sni, bootstrap.getsockname()[1])
    return BrokerPorts(listener, broker_ports(settings, listener), bound)
