"""Builds the gateway of a listener where brokers fetch from each other.

Brokers take their peers' addresses from the cluster's registrations: they advertise their inter-broker
listeners at this listener's ports, and upstream.brokers has the addresses where these listeners really are.
No request is rejected or throttled, no address is replaced, and only Fetch is read.
"""

import asyncio

from proxy.config.ports import broker_ports
from proxy.config.settings import Listener, Settings
from proxy.errors import KeyPath
from proxy.quota.engine import QuotaEngines
from proxy.relay.traffic import Traffic
from proxy.security.access import Access
from proxy.security.tls import server_tls
from proxy.server.listener.admission import UnlimitedAdmission
from proxy.server.listener.bootstrap_router import BootstrapRouter
from proxy.server.listener.client_identification import ClientIdentification
from proxy.server.listener.closed_connections import ClosedConnections
from proxy.server.listener.connections import ListenerConnections
from proxy.server.listener.dialer import BrokerDialer
from proxy.server.listener.discovery import ConfiguredBrokers
from proxy.server.listener.gateway import Gateway
from proxy.server.listener.ports import BrokerPorts
from proxy.server.listener.relays import ReplicationRelays
from proxy.server.listener.sockets import ListeningSockets
from proxy.server.listener.sweep import Sweep
from proxy.server.listener.traffic_watch import UnreadFetches
from proxy.tasks import Tasks
from proxy.upstream.refresh import ClusterRefresh
from proxy.upstream.topic_names import ClusterTopicNames


def replication_gateway(
    *, settings: Settings, listener: Listener, engines: QuotaEngines, cluster: ClusterRefresh, tasks: Tasks
) -> Gateway:
    """Build a listener for brokers. Raises SettingsError.

    `cluster` is the one of a listener for clients: this listener makes no requests of its own.
    """
    at: KeyPath = ("listeners", settings.listeners.index(listener))
    limits = settings.limits
    time = asyncio.get_running_loop().time
    access = Access(listener.upstream.tls, listener.upstream.sasl, (*at, "upstream"))
    tls = None if listener.tls is None else server_tls(listener.tls, (*at, "tls"))
    # What brokers fetch from each other is no tenant's usage.
    traffic = Traffic()
    # The ports call `sockets`, built below, when start() binds them.
    ports = BrokerPorts(
        listener, broker_ports(settings, listener), lambda node, bound: sockets.serve_broker(node, bound)
    )
    topic_names = ClusterTopicNames(cluster, asyncio.get_running_loop().call_later)
    router = BootstrapRouter(listener.upstream.addresses, cluster, ports)
    identification = ClientIdentification(listener, ports, router)
    closed = ClosedConnections(listener.name)
    connections = ListenerConnections(
        admission=UnlimitedAdmission(),
        identification=identification,
        router=router,
        relays=ReplicationRelays(
            engines=engines,
            traffic=traffic,
            max_frame_bytes=limits.max_frame_bytes,
            topic_names=topic_names,
            login=identification.login,
        ),
        ports=ports,
        topic_names=topic_names,
        dialer=BrokerDialer(
            router=router, cluster=cluster, access=access, connect_seconds=limits.connect_seconds
        ),
        local_responses=None,
        closed=closed,
        tasks=tasks,
        time=time,
    )
    sockets = ListeningSockets(
        listener=listener.name,
        bootstrap=None,
        tls=tls,
        handshake_seconds=limits.handshake_seconds,
        connections=connections,
        tasks=tasks,
    )
    watch = UnreadFetches(listener.name, traffic)
    return Gateway(
        listener=listener,
        traffic=traffic,
        access=access,
        tls=tls,
        ports=ports,
        connections=connections,
        closed=closed,
        sockets=sockets,
        discovery=ConfiguredBrokers(listener=listener.name, brokers=listener.upstream.brokers, ports=ports),
        watch=watch,
        sweep=Sweep(connections=connections, ports=ports, watch=watch, closed=closed, limits=limits),
        topic_names=cluster,
        tasks=tasks,
    )
