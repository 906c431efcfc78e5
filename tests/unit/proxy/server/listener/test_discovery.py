"""BrokerDiscovery: when brokers get ports, and when a listener serves clients."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from proxy.quota.cluster_view import ClusterView
from proxy.server.listener.discovery import ClusterDiscovery, ConfiguredBrokers
from proxy.tasks import Tasks
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.refresh import ClusterRefresh
from proxy.wire.addresses import BrokerAddress

VIEW = ClusterView("c", {7: BrokerAddress(7, "b", 97), 5: BrokerAddress(5, "b", 95)}, {})


class Ports:
    def __init__(self) -> None:
        self.known: dict[int, tuple[str, int]] = {}
        self.without_port: dict[int, str] = {}

    def advertised(self, node_id: int, host: str, port: int) -> None:
        self.known[node_id] = (host, port)


class Kit:
    def __init__(self, *, asks: bool = True) -> None:
        ports: Any = Ports()
        sockets: Any = SimpleNamespace(bootstrap_open=False, bootstrap_problem="")
        sockets.open_bootstrap = self._open
        self.ports, self.sockets = ports, sockets
        self.started: list[str] = []
        self.closed: list[str] = []
        cluster = ClusterRefresh("clients", ClusterAccess((("k", 9092),), 1.0), lambda view: None)
        authorizer: Any = SimpleNamespace(run=self._run, warning="")
        self.authorizer = authorizer
        counts: Any = SimpleNamespace(close=lambda: self.closed.append("counts"))
        self.discovery = ClusterDiscovery(
            listener="clients",
            asks=asks,
            cluster=cluster,
            authorizer=authorizer,
            counts=counts,
            ports=ports,
            sockets=sockets,
            tasks=Tasks(),
        )

    def _open(self) -> None:
        assert self.ports.known, "brokers have their ports before clients can ask for them"
        self.sockets.bootstrap_open = True

    async def _run(self) -> None:
        self.started.append("authorizer")


async def test_brokers_get_their_ports_before_the_bootstrap_port_opens() -> None:
    kit = Kit()
    kit.discovery.start()
    kit.discovery.cluster_changed(VIEW)
    assert kit.ports.known == {5: ("b", 95), 7: ("b", 97)}
    assert kit.sockets.bootstrap_open


async def test_metadata_that_comes_before_the_start_is_used_then() -> None:
    """The quotas are not loaded yet, and clients must not be served without them."""
    kit = Kit()
    kit.discovery.cluster.problem = ""
    kit.discovery.cluster.view = VIEW
    kit.discovery.cluster_changed(VIEW)
    assert (kit.ports.known, kit.sockets.bootstrap_open) == ({}, False)
    kit.discovery.start()
    assert kit.ports.known == {5: ("b", 95), 7: ("b", 97)}
    assert kit.sockets.bootstrap_open


async def test_a_listener_has_a_problem_until_its_cluster_responds_and_its_port_is_open() -> None:
    kit = Kit()
    cluster = kit.discovery.cluster
    assert kit.discovery.problems() == [f"clients: {cluster.problem}"]
    kit.discovery.start()
    cluster.problem = ""
    assert len(kit.discovery.problems()) == 1
    kit.discovery.cluster_changed(VIEW)
    assert kit.discovery.problems() == []
    cluster.problem = "no broker responds"
    assert kit.discovery.problems() == ["clients: no broker responds"]


def test_a_bootstrap_port_that_cannot_be_opened_is_a_problem() -> None:
    kit = Kit()
    kit.discovery.cluster.problem = ""
    kit.sockets.bootstrap_problem = "in use"
    assert kit.discovery.problems() == ["clients: in use"]


def test_warnings_are_the_authorizer_s() -> None:
    kit = Kit()
    assert kit.discovery.warnings() == []
    kit.authorizer.warning = "no authorizer"
    assert kit.discovery.warnings() == ["no authorizer"]


def test_the_brokers_of_the_latest_metadata() -> None:
    kit = Kit()
    kit.discovery.cluster.view = VIEW
    assert kit.discovery.nodes() == [5, 7]


@pytest.mark.parametrize(("asks", "started", "lines"), [(True, ["authorizer"], 0), (False, [], 1)])
async def test_a_cluster_that_the_proxy_cannot_ask_is_logged_and_its_authorizer_left_alone(
    asks: bool, started: list[str], lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    kit = Kit(asks=asks)
    running = asyncio.Event()

    async def run() -> None:
        running.set()

    kit.discovery.cluster.run = run  # type: ignore[method-assign]
    kit.discovery.learn()
    kit.discovery.start()
    await running.wait()
    await asyncio.sleep(0)
    assert kit.started == started
    assert len(caplog.records) == lines


def test_configured_brokers_get_their_ports_at_once() -> None:
    ports: Any = Ports()
    brokers = ConfiguredBrokers(listener="brokers", brokers={1: "a:9092", 2: "[::1]:9093"}, ports=ports)
    brokers.start()
    assert ports.known == {1: ("a", 9092), 2: ("::1", 9093)}
    assert (brokers.problems(), brokers.warnings()) == ([], [])
    ports.without_port[2] = "in use"
    assert brokers.problems() == ["brokers: in use"]
