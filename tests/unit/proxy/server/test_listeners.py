"""Listeners: by which of them the process knows the cluster, and which names topics."""

import socket
from pathlib import Path
from typing import Any

import pytest

from proxy.admin.dispatch import AdminApis
from proxy.errors import PortInUse
from proxy.quota.engine import QuotaEngines
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.limits import Limits
from proxy.server.listeners import Listeners
from proxy.tasks import Tasks
from tests.support.process.settings import read

PORTS = "bootstrap_port: 0, broker_port_base: 0"
ASKS = f"{{name: asks, {PORTS}, upstream: {{bootstrap: [a:1]}}}}"
MUST_NOT_ASK = f"{{name: logins, {PORTS}, principal: {{from: sasl}}, upstream: {{bootstrap: [a:1]}}}}"
BROKERS = f"{{name: brokers, replication: true, {PORTS}, upstream: {{brokers: {{1: 'b:2'}}}}}}"


class Apis:
    api_keys = AdminApis.api_keys
    authority = None
    protected = None


def listeners(tmp_path: Path, *entries: str) -> Listeners:
    apis: Any = Apis()
    made = Listeners(
        settings=read(tmp_path, "quotas: {store: none}\nlisteners: [" + ", ".join(entries) + "]\n"),
        engines=QuotaEngines(load_kinds(), Limits({})),
        admin=apis,
        tasks=Tasks(),
    )
    for gateway in made.all:
        gateway.stop_listening()
    return made


async def test_the_first_listener_that_may_ask_knows_the_cluster_for_the_others(tmp_path: Path) -> None:
    made = listeners(tmp_path, MUST_NOT_ASK, ASKS, BROKERS)
    logins, asks, brokers = made.all
    assert [gateway.name for gateway in made.all] == ["logins", "asks", "brokers"]
    assert made.asking is asks
    assert logins.topic_names is asks.topic_names
    assert brokers.topic_names is asks.topic_names
    assert [gateway.name for gateway in made.replication] == ["brokers"]
    [cluster] = made.asking_clusters
    assert cluster.cluster is asks.topic_names
    assert cluster.cluster.want_topics


async def test_listeners_that_may_ask_know_their_own_cluster(tmp_path: Path) -> None:
    made = listeners(tmp_path, ASKS, ASKS.replace("asks", "second"))
    first, second = made.clients
    assert first.topic_names is not second.topic_names
    assert not made.asking_clusters[0].cluster.want_topics


async def test_where_none_may_ask_the_first_stands_for_the_cluster(tmp_path: Path) -> None:
    made = listeners(tmp_path, MUST_NOT_ASK, MUST_NOT_ASK.replace("logins", "second"))
    assert made.asking.name == "logins"
    assert made.asking_clusters == []


async def test_a_bootstrap_port_in_use_names_its_listener(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"listener asks: bootstrap_port: .*{port}"):
            listeners(tmp_path, ASKS.replace("bootstrap_port: 0", f"bootstrap_port: {port}"))
