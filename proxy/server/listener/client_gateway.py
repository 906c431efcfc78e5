"""Builds the gateway of a listener for clients."""

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from proxy.admin.authorizer import AuthorizerWatch
from proxy.admin.dispatch import APIS
from proxy.config.ports import broker_ports
from proxy.config.settings import Listener
from proxy.quota.cluster_view import ClusterView
from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Traffic
from proxy.relay.settings import RelaySettings
from proxy.security.broker_hosts import BrokerHosts
from proxy.server.listener.brokers.broker_threads import BrokerThreads
from proxy.server.listener.brokers.quota_cluster_feed import QuotaClusterFeed
from proxy.server.listener.client_identification import login_of
from proxy.server.listener.discovery import ClusterDiscovery
from proxy.server.listener.gateway import Gateway
from proxy.server.listener.listener_context import ListenerContext
from proxy.server.listener.local_responses import LocalResponses
from proxy.server.listener.ports.broker_ports import BrokerPorts, bind
from proxy.server.listener.ports.early_ports import EarlyPorts
from proxy.server.listener.ports.sni_hosts import SniHosts
from proxy.server.listener.relays import ClientRelays
from proxy.server.listener.serving import Serving, TransportSecurity, serving, transport_security
from proxy.server.listener.traffic_watch import UnidentifiedLogins
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.partition_counts import PartitionCounts
from proxy.upstream.refresh import ClusterRefresh
from proxy.upstream.topic_names import ClusterTopicNames


class ClientListener(NamedTuple):
    """A gateway for clients, with those of its parts that the process uses."""

    gateway: Gateway
    discovery: ClusterDiscovery
    feed: QuotaClusterFeed
    threads: BrokerThreads


def client_listener(
    shared: ListenerContext, listener: Listener, *, names_from: ClusterRefresh | None, feeds_quotas: bool
) -> ClientListener:
    """Build a listener for clients and bind its bootstrap port. Raises SettingsError and PortInUse.

    `names_from`: the cluster that topics' names are requested from; None for the listener's own.
    `feeds_quotas`: whether the quotas see the cluster through this listener.
    """
    settings = shared.settings
    security = transport_security(settings, listener)
    traffic = Traffic(settings.metrics.topic_partitions, None if settings.usage is None else UsageLedger())
    bootstrap = _bootstrap_port(listener, shared.early)
    # The cluster and the ports call parts that are built below; nothing calls them before start().
    upstream = _upstream(
        shared,
        listener,
        security,
        names_from,
        lambda view: discovery.cluster_changed(view),
        lambda view: feed.cluster_seen(view) if feeds_quotas else None,
    )
    ports = _broker_ports(
        shared,
        listener,
        bootstrap,
        lambda node, bound: served.sockets.serve_broker(node, bound),
        security.access.hosts,
    )
    counts = PartitionCounts(ports.upstream, settings.limits.connect_seconds, security.access)
    served = _served(
        shared,
        listener,
        security=security,
        traffic=traffic,
        bootstrap=bootstrap,
        upstream=upstream,
        ports=ports,
        counts=counts,
    )
    discovery = _discovery(shared, listener, upstream.cluster, counts, ports, served)
    feed = QuotaClusterFeed(
        engines=shared.engines, cluster=upstream.cluster, time=asyncio.get_running_loop().time
    )
    threads = BrokerThreads(
        listener=listener.name,
        engines=shared.engines,
        cluster=upstream.cluster,
        counts=counts,
        time=asyncio.get_running_loop().time,
    )
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
        tasks=shared.tasks,
    )
    return ClientListener(gateway, discovery, feed, threads)


class _Upstream(NamedTuple):
    """What a listener knows of its cluster."""

    cluster: ClusterRefresh
    names: ClusterRefresh
    """The cluster that topics' names are requested from."""
    topic_names: ClusterTopicNames


def _upstream(
    shared: ListenerContext,
    listener: Listener,
    security: TransportSecurity,
    names_from: ClusterRefresh | None,
    changed: Callable[[ClusterView], None],
    seen: Callable[[ClusterView], None],
) -> _Upstream:
    seconds = shared.settings.limits.connect_seconds
    cluster = ClusterRefresh(
        listener.name,
        ClusterAccess(listener.upstream.addresses, seconds, security.access),
        changed,
        seen,
        listener.asks,
    )
    names = names_from or cluster
    return _Upstream(cluster, names, ClusterTopicNames(names, asyncio.get_running_loop().call_later))


def _served(
    shared: ListenerContext,
    listener: Listener,
    *,
    security: TransportSecurity,
    traffic: Traffic,
    bootstrap: socket.socket,
    upstream: _Upstream,
    ports: BrokerPorts,
    counts: PartitionCounts,
) -> Serving:
    relays = ClientRelays(
        engines=shared.engines,
        addresses=ports.addresses,
        traffic=traffic,
        settings=_relay_settings(shared, listener, upstream.topic_names),
    )
    local_responses = LocalResponses(
        admin=shared.admin,
        cluster=upstream.cluster,
        counts=counts,
        known_to_brokers=listener.known_to_brokers,
    )
    return serving(
        listener=listener,
        limits=shared.settings.limits,
        security=security,
        admission=shared.admission,
        bootstrap=bootstrap,
        cluster=upstream.cluster,
        ports=ports,
        topic_names=upstream.topic_names,
        relays=relays,
        local_responses=local_responses,
        tasks=shared.tasks,
        open_port=partial(shared.early.serve, listener.bind, listener.bootstrap_port),
    )


def _discovery(
    shared: ListenerContext,
    listener: Listener,
    cluster: ClusterRefresh,
    counts: PartitionCounts,
    ports: BrokerPorts,
    served: Serving,
) -> ClusterDiscovery:
    return ClusterDiscovery(
        listener=listener.name,
        asks=listener.asks,
        cluster=cluster,
        authorizer=AuthorizerWatch(listener.name, cluster, shared.admin.authority),
        counts=counts,
        ports=ports,
        sockets=served.sockets,
        tasks=shared.tasks,
    )


def _bootstrap_port(listener: Listener, early: EarlyPorts) -> socket.socket:
    what = f"listener {listener.name}: bootstrap_port: "
    return early.take(listener.bind, listener.bootstrap_port) or bind(
        listener.bind, listener.bootstrap_port, what, reuse_port=listener.reuse_port
    )


def _relay_settings(
    shared: ListenerContext, listener: Listener, topic_names: ClusterTopicNames
) -> RelaySettings:
    limits = shared.settings.limits
    return RelaySettings(
        max_frame_bytes=limits.max_frame_bytes,
        max_list_bytes=limits.max_list_request_bytes,
        max_topics_by_id=limits.max_topics_by_id,
        apis=APIS,
        intercepted_api_keys=shared.admin.api_keys,
        login=login_of(listener),
        protected=shared.admin.protected,
        topic_names=topic_names,
        large_frames=shared.large_frames,
        list_turns=shared.list_turns,
        group_members=shared.group_members,
        request_turns=shared.request_turns,
        response_turns=shared.response_turns,
        in_flight_room=shared.in_flight_room,
    )


def _broker_ports(
    shared: ListenerContext,
    listener: Listener,
    bootstrap: socket.socket,
    bound: Callable[[int, socket.socket], None],
    hosts: BrokerHosts,
) -> BrokerPorts:
    if listener.sni is not None:
        return SniHosts(listener, listener.sni, bootstrap.getsockname()[1], hosts)
    return BrokerPorts(listener, broker_ports(shared.settings, listener), bound, shared.early.take, hosts)
