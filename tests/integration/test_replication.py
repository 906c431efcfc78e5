"""Replication through the proxy: followers fetch at their own pace, and throttled ones at the throttle's."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.support.clients import Confluent
from tests.support.load import Load
from tests.support.proxy_process import ProxyProcess
from tests.support.reassignment import Meter, Reassignment, digests
from tests.support.replicated import Replicated
from tests.support.topics import leaders, make_topic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
MEBIBYTE = 1 << 20
RATE = 4 * MEBIBYTE
FED = "fed"
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    """Two brokers, each of which fetches from the other through `proxy`."""
    with Replicated(tmp_path_factory.mktemp("replicated"), brokers=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def proxy(cluster: Replicated) -> Iterator[ProxyProcess]:
    """With a topic FED that is in sync on both brokers, and has to stay so."""
    with cluster.proxy() as proxy:
        make_topic(cluster.kafka, FED, on=[(1, 2), (2, 1)], min_insync_replicas=2)
        yield proxy


def fill(cluster: Replicated, topic: str, megabytes: int) -> None:
    """Produce so much, in batches of 100 KB."""
    client = Confluent(batch_size=100_000, linger_ms=20)
    client.send(cluster.kafka.bootstrap, topic, megabytes * 1024, size=1024)


def configs(bootstrap: str, kind: ResourceType, name: str) -> dict[str, str]:
    """The values of a topic or broker that are set."""
    resource = ConfigResource(kind, name)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = admin.describe_configs([resource])[resource].result(30)
    return {key: entry.value for key, entry in found.items() if entry.value and not entry.is_default}


def set_brokers(proxy: ProxyProcess, **values: str | None) -> None:
    """Set these configs of both brokers, or remove those that are None; `_` stands for a dot."""
    entries = [
        ConfigEntry(
            key.replace("_", "."),
            value or "",
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for key, value in values.items()
    ]
    admin = AdminClient({"bootstrap.servers": proxy.bootstrap})
    for name in ("1", "2"):
        broker = ConfigResource(ResourceType.BROKER, name, incremental_configs=entries)
        admin.incremental_alter_configs([broker])[broker].result(30)


def even(seconds: list[float], rate: int) -> None:
    """Every second is near the throttle."""
    assert statistics.mean(seconds) == pytest.approx(rate, rel=0.1), seconds
    assert statistics.pstdev(seconds) / statistics.mean(seconds) < 0.3, seconds


def test_replicas_in_sync_are_fed_through_the_proxy(cluster: Replicated, proxy: ProxyProcess) -> None:
    client = Confluent()
    client.send(proxy.bootstrap, FED, 1000)
    assert len(client.read(proxy.bootstrap, FED, 1000)) == 1000
    cluster.wait_in_sync(FED, 2, {1, 2})
    assert proxy.metric("quota_proxy_connections", listener="replication") >= 2
    assert proxy.metric("quota_proxy_requests_total", listener="replication", api="Fetch") > 0
    assert proxy.metric("quota_proxy_unread_fetches_total", listener="replication") == 0
    tenants = {sample.labels["client_id"] for sample in proxy.metrics()["quota_proxy_client_bytes"].samples}
    assert not any("fetcher" in client_id for client_id in tenants), "followers are nobody's tenants"


def test_a_move_with_kafkas_tool_keeps_to_its_throttle(
    cluster: Replicated, proxy: ProxyProcess, tmp_path: Path
) -> None:
    """While others are produced to, and on brokers that never hear of the throttle."""
    make_topic(cluster.kafka, "moved", on=[(1,)] * 8)
    make_topic(cluster.kafka, "bystander", on=[(1, 2), (2, 1)], min_insync_replicas=2)
    fill(cluster, "moved", 40)
    before = digests(cluster.kafka, "moved", 8)
    reassignment = Reassignment(cluster.kafka, proxy.bootstrap, tmp_path, "moved", 8, [2])
    with Load(proxy.bootstrap, "bystander", 2) as load, Meter(proxy, 2) as meter:
        load.go_on()
        reassignment.execute(RATE)
        meter.wait(8 * MEBIBYTE)
        load.go_on()
        assert set(LISTS) <= configs(proxy.bootstrap, ResourceType.TOPIC, "moved").keys()
        assert not set(LISTS) & configs(cluster.kafka.bootstrap, ResourceType.TOPIC, "moved").keys()
        (row,) = [
            row
            for row in proxy.buckets()
            if row["kind"] == "follower.replication.throttled.rate" and row["broker"] == 2
        ]
        assert row["limit"] == RATE
        assert row["replicas_behind"] > 0
        assert row["lag"] > 0
        assert proxy.metric("quota_proxy_replica_lag", broker="2") > 0
        wait_until(lambda: set(leaders(cluster.kafka, "moved").values()) == {2}, "the move's end", 60)
        load.check()
        seconds = meter.by_second()
    even(seconds[1:], RATE)
    assert proxy.metric("quota_proxy_replication_omitted_partitions_total", broker="1", role="leader") > 0
    assert "is complete" in reassignment.verify()
    assert not set(LISTS) & configs(proxy.bootstrap, ResourceType.TOPIC, "moved").keys()
    assert not set(RATES) & configs(proxy.bootstrap, ResourceType.BROKER, "1").keys()
    assert digests(cluster.kafka, "moved", 8) == before
    assert cluster.in_sync("bystander") == {1, 2}


def test_a_changed_rate_holds_within_two_seconds(
    cluster: Replicated, proxy: ProxyProcess, tmp_path: Path
) -> None:
    """And a move that is cancelled leaves no throttle behind."""
    make_topic(cluster.kafka, "changed", on=[(1,)] * 4)
    fill(cluster, "changed", 48)
    reassignment = Reassignment(cluster.kafka, proxy.bootstrap, tmp_path, "changed", 4, [1, 2])
    reassignment.execute(2 * MEBIBYTE)
    with Meter(proxy, 2) as meter:
        meter.wait(10 * MEBIBYTE)
        rate = str(6 * MEBIBYTE)
        set_brokers(proxy, leader_replication_throttled_rate=rate, follower_replication_throttled_rate=rate)
        changed_at = time.monotonic()
        slow = meter.by_second()[1:]
        meter.wait(36 * MEBIBYTE)
        fast = meter.by_second(changed_at + 2)
    even(slow, 2 * MEBIBYTE)
    even(fast, 6 * MEBIBYTE)
    assert "cancelled" in reassignment.cancel().lower()
    assert not set(LISTS) & configs(proxy.bootstrap, ResourceType.TOPIC, "changed").keys()
    assert not set(RATES) & configs(proxy.bootstrap, ResourceType.BROKER, "2").keys()


def test_a_move_survives_the_proxy(cluster: Replicated, proxy: ProxyProcess, tmp_path: Path) -> None:
    """It is killed in the middle of it."""
    make_topic(cluster.kafka, "survives", on=[(1,)] * 4)
    fill(cluster, "survives", 24)
    before = digests(cluster.kafka, "survives", 4)
    reassignment = Reassignment(cluster.kafka, proxy.bootstrap, tmp_path, "survives", 4, [2])
    reassignment.execute(RATE)
    with Meter(proxy, 2) as meter:
        meter.wait(6 * MEBIBYTE)
    proxy.process.kill()
    proxy.process.wait()
    proxy.start().wait_ready()
    with Meter(proxy, 2) as meter:
        wait_until(lambda: set(leaders(cluster.kafka, "survives").values()) == {2}, "the move's end", 60)
        seconds = meter.by_second()
    assert statistics.mean(seconds[1:]) < 1.1 * RATE, seconds
    assert digests(cluster.kafka, "survives", 4) == before
    assert "is complete" in reassignment.verify()
    cluster.wait_in_sync(FED, 2, {1, 2})


def test_a_move_survives_its_broker(cluster: Replicated, proxy: ProxyProcess, tmp_path: Path) -> None:
    """The one that gets the replicas is killed in the middle of it, and starts again."""
    make_topic(cluster.kafka, "restarted", on=[(1,)] * 4)
    fill(cluster, "restarted", 16)
    before = digests(cluster.kafka, "restarted", 4)
    reassignment = Reassignment(cluster.kafka, proxy.bootstrap, tmp_path, "restarted", 4, [2])
    reassignment.execute(RATE)
    with Meter(proxy, 2) as meter:
        meter.wait(6 * MEBIBYTE)
        cluster.kafka.kill(2)
        cluster.kafka.start(2)
        started_at = time.monotonic()
        wait_until(lambda: set(leaders(cluster.kafka, "restarted").values()) == {2}, "the move's end", 60)
        seconds = meter.by_second(started_at)
    assert max(seconds, default=0.0) < 2.2 * RATE, seconds
    assert digests(cluster.kafka, "restarted", 4) == before
    assert "is complete" in reassignment.verify()
    cluster.wait_in_sync(FED, 2, {1, 2})


def test_a_whole_broker_is_throttled_with_one_switch(
    cluster: Replicated, proxy: ProxyProcess, tmp_path: Path
) -> None:
    """The lists are empty; and a proxy that ends in the middle of it hands over."""
    make_topic(cluster.kafka, "whole", on=[(1,)] * 4)
    fill(cluster, "whole", 16)
    set_brokers(
        proxy, follower_replication_throttled="true", follower_replication_throttled_rate=str(RATE // 2)
    )
    Reassignment(cluster.kafka, proxy.bootstrap, tmp_path, "whole", 4, [1, 2]).execute()
    with Meter(proxy, 2) as meter:
        meter.wait(10 * MEBIBYTE)
        seconds = meter.by_second()
    even(seconds[1:], RATE // 2)
    assert proxy.stop() == 0
    assert cluster.in_sync(FED) == {1, 2}
    proxy.start().wait_ready()
    with Meter(proxy, 2) as meter:
        meter.wait(2 * MEBIBYTE)
    set_brokers(proxy, follower_replication_throttled=None, follower_replication_throttled_rate=None)
    cluster.wait_in_sync("whole", 4, {1, 2})
    assert cluster.in_sync(FED) == {1, 2}
