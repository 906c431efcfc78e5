"""Replication through the proxy: followers fetch at their own pace, and throttled ones at the throttle's."""

from collections.abc import Iterator

import pytest

from tests.support.clients import Confluent
from tests.support.proxy_process import ProxyProcess
from tests.support.replicated import Replicated
from tests.support.topics import make_topic

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    """Two brokers, each of which fetches from the other through `proxy`."""
    with Replicated(tmp_path_factory.mktemp("replicated"), brokers=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def proxy(cluster: Replicated) -> Iterator[ProxyProcess]:
    with cluster.proxy() as proxy:
        yield proxy


def test_replicas_in_sync_are_fed_through_the_proxy(cluster: Replicated, proxy: ProxyProcess) -> None:
    make_topic(cluster.kafka, "fed", on=[(1, 2), (2, 1)], min_insync_replicas=2)
    client = Confluent()
    client.send(proxy.bootstrap, "fed", 1000)
    assert len(client.read(proxy.bootstrap, "fed", 1000)) == 1000
    cluster.wait_in_sync("fed", 2, {1, 2})
    assert proxy.metric("quota_proxy_connections", listener="replication") >= 2
    assert proxy.metric("quota_proxy_requests_total", listener="replication", api="Fetch") > 0
    assert proxy.metric("quota_proxy_unread_fetches_total", listener="replication") == 0


def test_replication_survives_a_killed_proxy(cluster: Replicated, proxy: ProxyProcess) -> None:
    make_topic(cluster.kafka, "survives", on=[(1, 2)], min_insync_replicas=2)
    client = Confluent()
    client.send(proxy.bootstrap, "survives", 100)
    proxy.process.kill()
    proxy.process.wait()
    proxy.start().wait_ready()
    client.send(proxy.bootstrap, "survives", 100)
    assert len(client.read(proxy.bootstrap, "survives", 200)) == 200
    assert cluster.in_sync("survives") == {1, 2}
