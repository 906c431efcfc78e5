"""Builds the gateway of a listener for clients."""

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from proxy.admin.authorizer import AuthorizerWatch
from proxy.admin.dispatch import APIS, AdminApis
from proxy.config.ports import broker_ports
from proxy.config.settings import Listener, Settings
from proxy.quota.cluster_view import ClusterView
from proxy.quota.engines import QuotaEngines
from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Traffic
from proxy.relay.large_frames import LargeFrames
from proxy.relay.settings import RelaySettings
from proxy.security.broker_hosts import BrokerHosts
from proxy.server.listener.admission import Admission
from proxy.server.listener.client_identification import login_of
from proxy.server.listener.discovery import ClusterDiscovery
from proxy.server.listener.early_ports import EarlyPorts
from proxy.server.listener.gateway import Gateway
from proxy.server.listener.local_responses import LocalResponses
from proxy.server.listener.ports import BrokerPorts, bind
from proxy.server.listener.quota_cluster_feed import QuotaClusterFeed
from proxy.server.listener.relays import ClientRelays
from proxy.server.listener.serving import Serving, TransportSecurity, serving, transport_security
from proxy.server.listener.sni_hosts import SniHosts
from proxy.server.listener.traffic_watch import UnidentifiedLogins
from proxy.tasks import Tasks
from proxy.upstream.cluster_access import ClusterAccess
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
    large_frames: LargeFrames,
    names_from: ClusterRefresh | None,
    feeds_quotas: bool,
    early: EarlyPorts,
    tasks: Tasks,
) -> ClientListener:
    """Build a listener for clients and bind its bootstrap port. Raises SettingsError and PortInUse.

    `names_from`: the cluster that topics' names are requested from; None for the listener's own.
    `feeds_quotas`: whether the quotas see the cluster through this listener.
    `early`: ports that listen already.
    """
    security = transport_security(settings, listener)
    traffic = Traffic(settings.metrics.topic_partitions, None if settings.usage is None else UsageLedger())
    bootstrap = _bootstrap_port(listener, early)
    # The cluster and the ports call parts that are built below; nothing calls them before start().
    upstream = _upstream(
        settings,
        listener,
        security,
        names_from,
        lambda view: discovery.cluster_changed(view),
        lambda view: feed.cluster_seen(view) if feeds_quotas else None,
    )
    ports = _broker_ports(
        settings,
        listener,
        bootstrap,
        lambda node, bound: served.sockets.serve_broker(node, bound),
        early,
        security.access.hosts,
    )
    counts = PartitionCounts(ports.upstream, settings.limits.connect_seconds, security.access)
    served = serving(
        listener=listener,
        limits=settings.limits,
        security=security,
        admission=admission,
        bootstrap=bootstrap,
        cluster=upstream.cluster,
        ports=ports,
        topic_names=upstream.topic_names,
        relays=ClientRelays(
            engines=engines,
            addresses=ports.addresses,
            traffic=traffic,
            settings=_relay_settings(settings, listener, admin, upstream.topic_names, large_frames),
        ),
        local_responses=LocalResponses(
            admin=admin,
            cluster=upstream.cluster,
            counts=counts,
            known_to_brokers=listener.known_to_brokers,
        ),
        tasks=tasks,
        open_port=partial(early.serve, listener.bind, listener.bootstrap_port),
    )
    discovery = _discovery(
        listener=listener,
        admin=admin,
        cluster=upstream.cluster,
        counts=counts,
        ports=ports,
        served=served,
        tasks=tasks,
    )
    feed = QuotaClusterFeed(engines=engines, cluster=upstream.cluster, time=asyncio.get_running_loop().time)
    gateway = Gateway(
        listener=listener,
        traffic=traffic,
        security=security,
        ports=ports,
        serving=served,
        discovery=discovery,
        watch=UnidentifiedLogins(listener, traffic),
        limits=settings.limits,
        topic_names=upstream.names,
        tasks=tasks,
    )
    return ClientListener(gateway, discovery, feed)


class _Upstream(NamedTuple):
    """What a listener knows of its cluster."""

    cluster: ClusterRefresh
    names: ClusterRefresh
    """The cluster that topics' names are requested from."""
    topic_names: ClusterTopicNames


def _upstream(
    settings: Settings,
    listener: Listener,
    security: TransportSecurity,
    names_from: ClusterRefresh | None,
    changed: Callable[[ClusterView], None],
    seen: Callable[[ClusterView], None],
) -> _Upstream:
    cluster = ClusterRefresh(
        listener.name,
        ClusterAccess(listener.upstream.addresses, settings.limits.connect_seconds, security.access),
        changed,
        seen,
        listener.asks,
    )
    names = names_from or cluster
    return _Upstream(cluster, names, ClusterTopicNames(names, asyncio.get_running_loop().call_later))


def _discovery(
    *,
    listener: Listener,
    admin: AdminApis,
    cluster: ClusterRefresh,
    counts: PartitionCounts,
    ports: BrokerPorts,
    served: Serving,
    tasks: Tasks,
) -> ClusterDiscovery:
    return ClusterDiscovery(
        listener=listener.name,
        asks=listener.asks,
        cluster=cluster,
        authorizer=AuthorizerWatch(listener.name, cluster, admin.authority),
        counts=counts,
        ports=ports,
        sockets=served.sockets,
        tasks=tasks,
    )


def _bootstrap_port(listener: Listener, early: EarlyPorts) -> socket.socket:
    what = f"listener {listener.name}: bootstrap_port: "
    return early.take(listener.bind, listener.bootstrap_port) or bind(
        listener.bind, listener.bootstrap_port, what, reuse_port=listener.reuse_port
    )


def _relay_settings(
    settings: Settings,
    listener: Listener,
    admin: AdminApis,
    topic_names: ClusterTopicNames,
    large_frames: LargeFrames,
) -> RelaySettings:
    return RelaySettings(
        max_frame_bytes=settings.limits.max_frame_bytes,
        max_list_bytes=settings.limits.max_list_request_bytes,
        apis=APIS,
        intercepted_api_keys=admin.api_keys,
        login=login_of(listener),
        protected=admin.protected,
        topic_names=topic_names,
        large_frames=large_frames,
    )


def _broker_ports(
    settings: Settings,
    listener: Listener,
    bootstrap: socket.socket,
    bound: Callable[[int, socket.socket], None],
    early: EarlyPorts,
    hosts: BrokerHosts,
) -> BrokerPorts:
    if listener.sni is not None:
        return SniHosts(listener, listener.sni, bootstrap.getsockname()[1], hosts)
    return BrokerPorts(listener, broker_ports(settings, listener), bound, early.take, hosts)
