"""Builds the gateway of a listener where brokers fetch from each other.

Brokers take their peers' addresses from the cluster's registrations: they advertise their inter-broker
listeners at this listener's ports, and upstream.brokers has the addresses where these listeners really are.
No request is rejected or throttled, no address is replaced, and only Fetch is read.
"""

import asyncio

from proxy.config.ports import broker_ports
from proxy.config.settings import Listener
from proxy.relay.counters.traffic import Traffic
from proxy.relay.settings import RelaySettings
from proxy.server.listener.accept.admission import UnlimitedAdmission
from proxy.server.listener.client_identification import login_of
from proxy.server.listener.discovery import ConfiguredBrokers
from proxy.server.listener.gateway import Gateway
from proxy.server.listener.listener_context import ListenerContext
from proxy.server.listener.ports.broker_ports import BrokerPorts
from proxy.server.listener.relays import ReplicationRelays
from proxy.server.listener.serving import serving, transport_security
from proxy.server.listener.traffic_watch import UnreadFetches
from proxy.upstream.refresh import ClusterRefresh
from proxy.upstream.topic_names import ClusterTopicNames


def replication_gateway(shared: ListenerContext, listener: Listener, cluster: ClusterRefresh) -> Gateway:
    """Build a listener for brokers. Raises SettingsError.

    `cluster` is the one of a listener for clients: this listener makes no requests of its own.
    """
    limits = shared.settings.limits
    security = transport_security(shared.settings, listener)
    # Fetches between brokers are not the usage of a tenant.
    traffic = Traffic()
    # The ports call `served`, built below, when start() binds them.
    ports = BrokerPorts(
        listener,
        broker_ports(shared.settings, listener),
        lambda node, bound: served.sockets.serve_broker(node, bound),
        shared.early.take,
    )
    topic_names = ClusterTopicNames(cluster, asyncio.get_running_loop().call_later)
    relay_settings = RelaySettings(
        max_frame_bytes=limits.max_frame_bytes,
        between_brokers=True,
        login=login_of(listener),
        topic_names=topic_names,
        request_turns=shared.request_turns,
        response_turns=shared.response_turns,
    )
    served = serving(
        listener=listener,
        limits=limits,
        security=security,
        admission=UnlimitedAdmission(),
        bootstrap=None,
        cluster=cluster,
        ports=ports,
        topic_names=topic_names,
        relays=ReplicationRelays(engines=shared.engines, traffic=traffic, settings=relay_settings),
        local_responses=None,
        tasks=shared.tasks,
    )
    return Gateway(
        listener=listener,
        traffic=traffic,
        security=security,
        ports=ports,
        serving=served,
        discovery=ConfiguredBrokers(listener=listener.name, brokers=listener.upstream.brokers, ports=ports),
        watch=UnreadFetches(listener.name, traffic),
        limits=limits,
        topic_names=cluster,
        tasks=shared.tasks,
    )
