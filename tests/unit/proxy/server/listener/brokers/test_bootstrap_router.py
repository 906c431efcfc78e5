"""Which broker a bootstrap connection gets, by what is known of the cluster."""

import socket
from collections import Counter
from collections.abc import Iterator

import pytest

from proxy.config.settings import Listener, Upstream
from proxy.quota.cluster_view import ClusterView
from proxy.server.listener.brokers.bootstrap_router import STAND_IN, UNREACHABLE_SECONDS, BootstrapRouter
from proxy.server.listener.ports.broker_ports import BrokerPorts
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.refresh import ClusterRefresh
from proxy.wire.addresses import BrokerAddress

BOOTSTRAP = (("a", 1), ("b", 2))
LISTENER = Listener(upstream=Upstream(bootstrap=("a:1", "b:2")), broker_port_base=0)


class Kit:
    def __init__(self) -> None:
        self.cluster = ClusterRefresh("test", ClusterAccess(BOOTSTRAP, 1.0), lambda view: None)
        self.bound: list[socket.socket] = []
        self.ports = BrokerPorts(LISTENER, range(0), self._bound)
        self.now = 0.0
        self.router = BootstrapRouter(BOOTSTRAP, self.cluster, self.ports, lambda: self.now)

    def _bound(self, node_id: int, bound: socket.socket) -> None:
        self.bound.append(bound)

    def close(self) -> None:
        for bound in self.bound:
            bound.close()

    def turns(self, count: int) -> Counter[int]:
        return Counter(self.router.next() for _ in range(count))


@pytest.fixture
def kit() -> Iterator[Kit]:
    kit = Kit()
    yield kit
    kit.close()


def test_brokers_of_the_metadata_in_round_robin(kit: Kit) -> None:
    nodes = {node_id: BrokerAddress(node_id, "host", node_id) for node_id in (1, 2, 3)}
    kit.cluster.view = ClusterView("cluster", nodes, {})
    assert kit.turns(9) == {1: 3, 2: 3, 3: 3}


def test_without_a_known_broker_the_bootstrap_addresses_in_round_robin(kit: Kit) -> None:
    turns = kit.turns(4)
    assert turns == {STAND_IN: 2, STAND_IN - 1: 2}
    assert {kit.router.address(node_id) for node_id in turns} == set(BOOTSTRAP)


def test_brokers_named_in_responses_to_clients(kit: Kit) -> None:
    kit.ports.advertised(5, "internal", 9092)
    assert kit.turns(3) == {5: 3}
    assert kit.router.address(5) == ("internal", 9092)
    assert kit.router.address(6) is None


def test_an_unreachable_broker_is_skipped_while_there_are_others(kit: Kit) -> None:
    for node_id in (5, 6):
        kit.ports.advertised(node_id, "internal", 9000 + node_id)
    kit.router.mark_unreachable(5)
    assert kit.turns(2) == {6: 2}
    kit.router.mark_unreachable(6)
    assert kit.router.next() <= STAND_IN
    assert set(kit.turns(2)) == {5, 6}


def test_an_unreachable_broker_of_the_metadata_is_skipped_for_some_seconds(kit: Kit) -> None:
    nodes = {node_id: BrokerAddress(node_id, "host", node_id) for node_id in (1, 2, 3)}
    kit.cluster.view = ClusterView("cluster", nodes, {})
    kit.router.mark_unreachable(2)
    assert kit.turns(4) == {1: 2, 3: 2}
    kit.now = UNREACHABLE_SECONDS
    assert kit.turns(3) == {1: 1, 2: 1, 3: 1}


def test_if_every_broker_is_unreachable_there_is_no_other(kit: Kit) -> None:
    """A new client gets one of them all the same: it may be back."""
    nodes = {node_id: BrokerAddress(node_id, "host", node_id) for node_id in (1, 2)}
    kit.cluster.view = ClusterView("cluster", nodes, {})
    kit.router.mark_unreachable(1)
    assert kit.router.other() == 2
    kit.router.mark_unreachable(2)
    stand_ins = {STAND_IN, STAND_IN - 1}
    assert kit.router.other() in stand_ins
    for stand_in in stand_ins:
        kit.router.mark_unreachable(stand_in)
    assert kit.router.other() is None
    assert set(kit.turns(2)) == {1, 2}
