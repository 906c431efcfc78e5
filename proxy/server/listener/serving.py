"""Serving: the connections of one listener and the sockets that accept them, from its parts.

Listeners for clients and for brokers connect these parts in the same way.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import NamedTuple

from proxy.config.settings import ConnectionLimits, Listener, Settings
from proxy.errors import KeyPath
from proxy.security.access import Access
from proxy.security.broker_hosts import BrokerHosts
from proxy.security.tls import TlsFiles, server_tls
from proxy.server.listener.accept.admission import Admission
from proxy.server.listener.accept.proxy_headers import ProxyHeaders
from proxy.server.listener.brokers.bootstrap_router import BootstrapRouter
from proxy.server.listener.brokers.dialer import BrokerDialer
from proxy.server.listener.brokers.rejected_addresses import RejectedAddresses
from proxy.server.listener.client_identification import ClientIdentification
from proxy.server.listener.closed_connections import ClosedConnections
from proxy.server.listener.connections import ListenerConnections
from proxy.server.listener.local_responses import LocalResponses
from proxy.server.listener.ports.broker_ports import BrokerPorts, listen
from proxy.server.listener.relays import Relays
from proxy.server.listener.sockets import ListeningSockets
from proxy.tasks import Tasks
from proxy.upstream.refresh import ClusterRefresh
from proxy.upstream.topic_names import ClusterTopicNames


class TransportSecurity(NamedTuple):
    """The security of both sides of a listener."""

    access: Access
    """Where brokers may be, and how the proxy's own connections log in to them."""
    tls: TlsFiles | None
    """TLS towards clients; None for plaintext."""
    rejected: RejectedAddresses
    """The addresses that upstream.hosts rejects."""


class Serving(NamedTuple):
    """The connections of a listener, with what opens and closes them."""

    connections: ListenerConnections
    closed: ClosedConnections
    sockets: ListeningSockets
    dialer: BrokerDialer


def transport_security(settings: Settings, listener: Listener) -> TransportSecurity:
    """Load the certificates and secrets of a listener. Raises SettingsError."""
    at: KeyPath = ("listeners", settings.listeners.index(listener))
    upstream = listener.upstream
    rejected = RejectedAddresses(listener.name)
    hosts = BrokerHosts(upstream.hosts, upstream.addresses, rejected.reject)
    access = Access(upstream.tls, upstream.sasl, (*at, "upstream"), hosts)
    tls = None if listener.tls is None else server_tls(listener.tls, (*at, "tls"))
    return TransportSecurity(access, tls, rejected)


def serving(
    *,
    listener: Listener,
    limits: ConnectionLimits,
    security: TransportSecurity,
    admission: Admission,
    bootstrap: socket.socket | None,
    cluster: ClusterRefresh,
    ports: BrokerPorts,
    topic_names: ClusterTopicNames,
    relays: Relays,
    local_responses: LocalResponses | None,
    tasks: Tasks,
    open_port: Callable[[socket.socket], None] = listen,
) -> Serving:
    """Connect the parts. `bootstrap` is the bound bootstrap port, which `open_port` opens; None if the
    listener has none.
    """
    time = asyncio.get_running_loop().time
    router = BootstrapRouter(listener.upstream.addresses, cluster, ports, time)
    dialer = BrokerDialer(
        router=router, cluster=cluster, access=security.access, connect_seconds=limits.connect_seconds
    )
    closed = ClosedConnections(listener.name)
    connections = ListenerConnections(
        admission=admission,
        identification=ClientIdentification(listener, ports),
        router=router,
        relays=relays,
        ports=ports,
        topic_names=topic_names,
        dialer=dialer,
        local_responses=local_responses,
        closed=closed,
        tasks=tasks,
        time=time,
    )
    sockets = ListeningSockets(
        listener=listener.name,
        bootstrap=bootstrap,
        tls=security.tls,
        handshake_seconds=limits.handshake_seconds,
        connections=connections,
        tasks=tasks,
        origins=_origins(listener, limits, admission, closed, tasks),
        open_port=open_port,
    )
    return Serving(connections, closed, sockets, dialer)


def _origins(
    listener: Listener,
    limits: ConnectionLimits,
    admission: Admission,
    closed: ClosedConnections,
    tasks: Tasks,
) -> ProxyHeaders | None:
    settings = listener.proxy_protocol
    if settings is None:
        return None
    seconds = limits.handshake_seconds
    return ProxyHeaders(settings, admission=admission, closed=closed, seconds=seconds, tasks=tasks)
