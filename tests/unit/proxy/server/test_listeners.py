"""Listeners: by which of them the process knows the cluster, and which names topics."""

import socket
from pathlib import Path

import pytest

from proxy.errors import PortInUse
from tests.support.process.listeners import listeners_of

PORTS = "bootstrap_port: 0, broker_port_base: 0"
ASKS = f"{{name: asks, {PORTS}, upstream: {{bootstrap: [a:1]}}}}"
MUST_NOT_ASK = f"{{name: logins, {PORTS}, principal: {{from: sasl}}, upstream: {{bootstrap: [a:1]}}}}"
BROKERS = f"{{name: brokers, replication: true, {PORTS}, upstream: {{brokers: {{1: 'b:2'}}}}}}"


async def test_the_first_listener_that_may_ask_knows_the_cluster_for_the_others(tmp_path: Path) -> None:
    made = listeners_of(tmp_path, MUST_NOT_ASK, ASKS, BROKERS)
    logins, asks, brokers = made.all
    assert [gateway.name for gateway in made.all] == ["logins", "asks", "brokers"]
    assert made.cluster_access is asks.topic_names.cluster_access
    assert logins.topic_names is asks.topic_names
    assert brokers.topic_names is asks.topic_names
    assert [gateway.name for gateway in made.replication] == ["brokers"]
    [cluster] = made.asking_clusters
    assert cluster.cluster is asks.topic_names
    assert cluster.cluster.want_topics


async def test_listeners_that_may_ask_know_their_own_cluster(tmp_path: Path) -> None:
    made = listeners_of(tmp_path, ASKS, ASKS.replace("asks", "second"))
    first, second = made.clients
    assert first.topic_names is not second.topic_names
    assert not made.asking_clusters[0].cluster.want_topics


async def test_where_none_may_ask_the_first_stands_for_the_cluster(tmp_path: Path) -> None:
    made = listeners_of(tmp_path, MUST_NOT_ASK, MUST_NOT_ASK.replace("logins", "second"))
    assert made.cluster_access is made.clients[0].topic_names.cluster_access
    assert made.asking_clusters == []


async def test_a_bootstrap_port_in_use_names_its_listener(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"asks: bootstrap_port: .*{port}"):
            listeners_of(tmp_path, ASKS.replace("bootstrap_port: 0", f"bootstrap_port: {port}"))
