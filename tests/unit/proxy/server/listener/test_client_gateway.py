"""The parts of a listener for clients, and what they share with other listeners."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from proxy.errors import PortInUse
from proxy.quota.cluster_view import ClusterView
from proxy.quota.engines import QuotaEngines
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.limits import Limits
from proxy.relay.budgets.group_members import GroupMembers
from proxy.relay.budgets.large_frames import LargeFrames
from proxy.relay.budgets.list_turns import ListTurns
from proxy.relay.budgets.read_turns import ReadTurns
from proxy.relay.inflight import InFlightRoom
from proxy.server.listener.accept.admission import LimitedAdmission
from proxy.server.listener.client_gateway import ClientListener, client_listener
from proxy.server.listener.listener_context import ListenerContext
from proxy.server.listener.ports.broker_ports import BrokerPorts
from proxy.server.listener.ports.early_ports import EarlyPorts
from proxy.server.listener.ports.sni_hosts import SniHosts
from proxy.server.system.descriptors import allow_connections
from proxy.tasks import Tasks
from proxy.upstream.refresh import ClusterRefresh
from proxy.wire.addresses import BrokerAddress
from tests.support.process.certificates import Authority
from tests.support.process.listeners import NoAdminApis
from tests.support.process.settings import read

HOST = "127.0.0.1"
PLAIN = "{bootstrap_port: 0, broker_port_base: 0, upstream: {bootstrap: ['k:9092']}}"


class Builder:
    """Builds listeners of this process, and closes their ports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engines = QuotaEngines(load_kinds(), Limits({}))
        self.built: list[ClientListener] = []

    def build(self, listener: str = PLAIN, more: str = "", **parts: Any) -> ClientListener:
        """A listener of the configuration, whose quotas see the cluster unless `parts` say otherwise."""
        settings = read(self.folder, f"quotas: {{store: none}}\nlisteners: [{listener}]\n{more}")
        admin: Any = NoAdminApis()
        shared = ListenerContext(
            settings=settings,
            engines=self.engines,
            admission=LimitedAdmission(allow_connections(10), 10),
            admin=admin,
            large_frames=LargeFrames(),
            list_turns=ListTurns(1),
            group_members=GroupMembers(1 << 20),
            request_turns=ReadTurns(None),
            response_turns=ReadTurns(None),
            in_flight_room=InFlightRoom(),
            early=EarlyPorts({}),
            tasks=Tasks(),
        )
        options: dict[str, Any] = {"names_from": None, "feeds_quotas": True, **parts}
        made = client_listener(shared, settings.client_listeners[0], **options)
        self.built.append(made)
        return made


@pytest.fixture
async def builder(tmp_path: Path) -> AsyncIterator[Builder]:
    made = Builder(tmp_path)
    yield made
    for listener in made.built:
        listener.gateway.stop_listening()
        listener.gateway.close()


def ports_of(listener: ClientListener) -> BrokerPorts:
    return listener.gateway._ports


async def test_nobody_is_served_before_the_start(builder: Builder) -> None:
    """Although its bootstrap port is bound, so that a port in use ends the process early."""
    found = builder.build()
    assert found.gateway.connection_count == 0
    assert found.gateway.problems() != []
    assert not found.gateway.between_brokers


async def test_a_port_in_use_names_the_listener_and_its_key(builder: Builder) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        listener = PLAIN.replace("bootstrap_port: 0", f"name: second, bootstrap_port: {port}")
        with pytest.raises(PortInUse, match=f"second: bootstrap_port: .*{port}"):
            builder.build(listener)


@pytest.mark.parametrize(("more", "counts"), [("", False), ("usage: {files: {folder: FOLDER}}", True)])
async def test_usage_is_counted_where_it_is_written(builder: Builder, more: str, counts: bool) -> None:
    found = builder.build(more=more.replace("FOLDER", str(builder.folder)))
    assert (found.gateway.usage is not None) == counts


async def test_the_quotas_see_the_cluster_of_one_listener(builder: Builder) -> None:
    feeding, other = builder.build(), builder.build(feeds_quotas=False)
    for node_id, listener in ((1, feeding), (2, other)):
        listener.discovery.cluster._seen(ClusterView("c", {node_id: BrokerAddress(node_id, "b", 9092)}, {}))
    assert list(builder.engines.engines()) == [1]


async def test_topics_have_the_names_that_another_listeners_cluster_knows(builder: Builder) -> None:
    first = builder.build()
    second = builder.build(names_from=first.discovery.cluster)
    assert first.gateway.topic_names is first.discovery.cluster
    assert second.gateway.topic_names is first.discovery.cluster
    assert isinstance(second.discovery.cluster, ClusterRefresh)
    assert second.discovery.cluster is not first.discovery.cluster


async def test_brokers_have_ports_or_host_names(builder: Builder, tmp_path: Path) -> None:
    signed = Authority(tmp_path).sign("proxy")
    sni = (
        "{sni: {port: 0, bootstrap_host: kafka.example.com, broker_host: b-$(node_id).example.com}, "
        f"tls: {{certificate: {signed.certificate}, key: {signed.key}}}, "
        "upstream: {bootstrap: ['k:9092']}}"
    )
    hosts = ports_of(builder.build(sni))
    assert isinstance(hosts, SniHosts)
    assert hosts.advertised(7, "internal", 9092).host == "b-7.example.com"
    ports = ports_of(builder.build())
    assert not isinstance(ports, SniHosts)
    assert ports.advertised(7, "internal", 9092).host != "b-7.example.com"
