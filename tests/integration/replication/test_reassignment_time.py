"""Moves of replicas take the time that `quota-pipeline reassign` expects."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pipeline.cluster.log_dirs import read_cluster
from pipeline.transforms.reassignment import Cluster, Move, plan
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.fill import fill
from tests.support.kafka.reassignment import Meters, Reassignment
from tests.support.kafka.replicated import Replicated
from tests.support.kafka.topics import make_topic
from tests.support.process.proxy_process import ProxyProcess

pytestmark = [pytest.mark.kafka, pytest.mark.timed]
MEBIBYTE = 1 << 20
RATE = 4 * MEBIBYTE
BROKERS = 4
Replicas = Sequence[Sequence[int]]


@pytest.fixture(scope="module")
def proxy(replicated: Replicated) -> Iterator[ProxyProcess]:
    """The proxy through which all brokers but the fourth are fetched from."""
    with replicated.proxy() as proxy, replicated.second_proxy():
        yield proxy


def cluster_of(kafka: EmbeddedKafka, topic: str, after: Replicas) -> Cluster:
    """The cluster as `reassign` sees it, with this topic alone."""
    found = asyncio.run(read_cluster(kafka.bootstrap.split(",")[0]))
    partitions = [each for each in found.partitions if each.topic == topic]
    moves = [Move(topic, number, list(replicas)) for number, replicas in enumerate(after)]
    return Cluster(found.brokers, partitions, moves)


@pytest.mark.parametrize(
    ("name", "before", "after", "megabytes"),
    [
        ("one-of-two", [(1, 2)] * 4, [(1, 3)] * 4, 40),
        ("two-in-turn", [(1, 2), (2, 3), (3, 1)], [(1, 3), (2, 1), (3, 2)], 96),
        ("one-of-three", [(1, 2, 3), (2, 1, 3)], [(1, 2, 4), (2, 1, 4)], 40),
        ("from-one-to-three", [(1,)] * 4, [(1, 2, 3)] * 4, 26),
    ],
)
def test_a_move_takes_as_long_as_expected(
    replicated: Replicated,
    proxy: ProxyProcess,
    tmp_path: Path,
    name: str,
    before: Replicas,
    after: Replicas,
    megabytes: int,
) -> None:
    cluster = replicated
    make_topic(cluster.kafka, name, on=before)
    fill(cluster.kafka.bootstrap, name, megabytes)
    cluster.wait_in_sync(name, before)
    planned = plan(cluster_of(cluster.kafka, name, after), RATE)
    assert planned.expected_seconds is not None
    reassignment = Reassignment(cluster.kafka, proxy.bootstrap, tmp_path, name, on=after)
    with Meters(proxy, *range(1, BROKERS + 1)) as meters:
        reassignment.execute(RATE)
        cluster.wait_in_sync(name, after, 60)
    moved = max(meter.seconds for meter in meters if meter.moved)
    print(
        f"{name}: {moved:.1f} s, expected {planned.expected_seconds:.1f}, KIP-73 {planned.move_seconds:.1f}"
    )
    assert moved == pytest.approx(planned.expected_seconds, rel=0.15)
    assert "is complete" in reassignment.verify()
