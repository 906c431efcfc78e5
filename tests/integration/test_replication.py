"""Replication through the proxy: followers fetch at their own pace, and throttled ones at the throttle's."""

import json
import statistics
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients import Confluent
from tests.support.proxy_process import ProxyProcess
from tests.support.replicated import Replicated
from tests.support.topics import make_topic
from tests.support.waiting import wait_until

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


MEBIBYTE = 1 << 20
RATE = 4 * MEBIBYTE


def throttles(topic: str, rate: int = RATE) -> dict[str, Any]:
    """The file's `quotas`, for a topic of which every replica is throttled."""
    lists = {"leader.replication.throttled.replicas": "*", "follower.replication.throttled.replicas": "*"}
    rates = {"leader.replication.throttled.rate": rate, "follower.replication.throttled.rate": rate}
    return {"store": "none", "topics": {topic: lists}, "brokers": {"<default>": rates}}


def fill(cluster: Replicated, topic: str, megabytes: int) -> None:
    """Produce so much that no compression makes it less."""
    client = Confluent(batch_size=100_000, linger_ms=20)
    client.send(cluster.kafka.bootstrap, topic, megabytes * 1024, size=1024)


def move(cluster: Replicated, folder: Path, topic: str, partitions: int, to: list[int]) -> None:
    plan = folder / "plan.json"
    moves = [{"topic": topic, "partition": number, "replicas": to} for number in range(partitions)]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    cluster.kafka.run_tool(
        "kafka-reassign-partitions",
        *("--bootstrap-server", cluster.kafka.bootstrap),
        *("--reassignment-json-file", str(plan), "--execute"),
    )


def moved(proxy: ProxyProcess, broker: int) -> float:
    return proxy.metric("quota_proxy_follower_replication_throttled_bytes_total", broker=str(broker))


def sample(proxy: ProxyProcess, broker: int, until: float) -> list[tuple[float, float]]:
    """(time, bytes moved so far), ten times a second, until so many have been."""
    samples: list[tuple[float, float]] = []

    def enough() -> bool:
        samples.append((time.monotonic(), moved(proxy, broker)))
        time.sleep(0.05)
        return samples[-1][1] >= until

    wait_until(enough, f"{until} bytes moved to broker {broker}", 90)
    return samples


def rates(samples: list[tuple[float, float]]) -> list[float]:
    """Bytes of each whole second, from the first byte on."""
    began = next(at for at, size in samples if size > 0)
    sums = [0.0] * (int(samples[-1][0] - began) + 1)
    for (_, before), (at, size) in pairwise(samples):
        if at >= began:
            sums[int(at - began)] += size - before
    return sums[:-1]


def test_a_move_keeps_to_the_throttle(cluster: Replicated, proxy: ProxyProcess, tmp_path: Path) -> None:
    make_topic(cluster.kafka, "paced", on=[(1,)] * 8)
    fill(cluster, "paced", 40)
    proxy.stop()
    with cluster.proxy("throttled", quotas=throttles("paced")) as throttled:
        move(cluster, tmp_path, "paced", 8, [1, 2])
        seconds = rates(sample(throttled, 2, 36 * MEBIBYTE))
        cluster.wait_in_sync("paced", 8, {1, 2})
        steady = seconds[1:]
        assert statistics.mean(steady) == pytest.approx(RATE, rel=0.1)
        assert statistics.pstdev(steady) / statistics.mean(steady) < 0.3
    proxy.start().wait_ready()
