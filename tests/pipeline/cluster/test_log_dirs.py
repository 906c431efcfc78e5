"""The partitions of a cluster, and a plan for them."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from click.testing import Result
from kio.schema.errors import ErrorCode

from pipeline.cluster.log_dirs import read_cluster
from pipeline.errors import InputError, PipelineError
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.wire.api_keys import METADATA
from tests.support.kafka.clients import Confluent
from tests.support.kafka.topics import make_topic
from tests.support.messages.kio_messages import response_type
from tests.support.messages.mutations import NO_TIME
from tests.support.messages.requests import build, part
from tests.support.process.socket_broker import SocketBroker

DESCRIBE_LOG_DIRS = 35
Log = tuple[int, int, bool]
"""A partition of the topic `orders`, its bytes, and whether it is a future replica."""


class LogDirsBroker(SocketBroker):
    """Responds to Metadata with these brokers, and to DescribeLogDirs with its own logs."""

    newest: ClassVar = {METADATA: 12, DESCRIBE_LOG_DIRS: 2}

    def __init__(self, *log_dirs: list[Log]) -> None:
        self.brokers: list[LogDirsBroker] = [self]
        self._log_dirs = log_dirs

    async def respond(self, request: Any) -> Any:
        schema = response_type(request.__api_key__, request.__version__)
        return self._metadata(schema) if request.__api_key__ == METADATA else self._sizes(schema)

    def _metadata(self, schema: Any) -> Any:
        nodes = (
            part(
                schema,
                "MetadataResponseBroker",
                node_id=number,
                host=broker.address[0],
                port=broker.address[1],
            )
            for number, broker in enumerate(self.brokers, 1)
        )
        partitions = (
            part(
                schema,
                "MetadataResponsePartition",
                error_code=ErrorCode.none,
                partition_index=number,
                leader_id=1,
                replica_nodes=(1, 2),
                isr_nodes=(1, 2),
            )
            for number in range(2)
        )
        topic = part(
            schema,
            "MetadataResponseTopic",
            error_code=ErrorCode.none,
            name="orders",
            topic_id=None,
            partitions=tuple(partitions),
        )
        return build(schema, throttle_time=NO_TIME, brokers=tuple(nodes), cluster_id="c", topics=(topic,))

    def _sizes(self, schema: Any) -> Any:
        results = []
        for logs in self._log_dirs:
            partitions = (
                part(
                    schema,
                    "DescribeLogDirsPartition",
                    partition_index=number,
                    partition_size=size,
                    offset_lag=0,
                    is_future_key=future,
                )
                for number, size, future in logs
            )
            topic = part(schema, "DescribeLogDirsTopic", name="orders", partitions=tuple(partitions))
            results.append(
                part(
                    schema,
                    "DescribeLogDirsResult",
                    error_code=ErrorCode.none,
                    log_dir="/data",
                    topics=(topic,),
                )
            )
        return build(schema, throttle_time=NO_TIME, results=tuple(results))


async def test_a_partition_has_the_bytes_of_its_largest_replica() -> None:
    """Over all log.dirs of all brokers; a future replica is none yet, and an unknown size is 0."""
    leader = LogDirsBroker([(0, 500, False)], [(0, 9000, True)])
    follower = LogDirsBroker([(0, 700, False)], [])
    async with leader, follower:
        leader.brokers.append(follower)
        cluster = await read_cluster("{}:{}".format(*leader.address))
    assert cluster.brokers == [1, 2]
    found = [(each.topic, each.partition, each.replicas, each.bytes) for each in cluster.partitions]
    assert found == [("orders", 0, [1, 2], 700), ("orders", 1, [1, 2], 0)]


async def test_without_the_right_to_see_logs_there_is_no_plan() -> None:
    """The broker then responds without any log directory, and all sizes would be 0."""
    async with LogDirsBroker() as broker:
        address = "{}:{}".format(*broker.address)
        with pytest.raises(PipelineError, match=f"{address} .* Describe") as failed:
            await read_cluster(address)
    assert not isinstance(failed.value, InputError)


@pytest.mark.kafka
def test_partitions_with_replicas_and_sizes(
    kafka: EmbeddedKafka, run_job: Callable[..., Result], tmp_path: Path
) -> None:
    make_topic(kafka, "log-dirs", 2)
    Confluent().send(kafka.bootstrap, "log-dirs", 1000, size=1000)
    cluster = asyncio.run(read_cluster(kafka.bootstrap))
    assert cluster.brokers == [1]
    found = [each for each in cluster.partitions if each.topic == "log-dirs"]
    assert [(each.partition, each.replicas) for each in found] == [(0, [1]), (1, [1])]
    assert 1_000_000 <= sum(each.bytes for each in found) <= 1_300_000
    moves = tmp_path / "moves.json"
    partitions = [{"topic": "log-dirs", "partition": 0, "replicas": [1]}]
    moves.write_text(json.dumps({"version": 1, "partitions": partitions}))
    options = ("--bootstrap", kafka.bootstrap, "--moves", moves, "--out", tmp_path)
    result = run_job("reassign", *options)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "plan.json").read_text())["move_ratio"] == 0


def test_nobody_there_is_a_sentence(run_job: Callable[..., Result], tmp_path: Path) -> None:
    result = run_job("reassign", "--bootstrap", "127.0.0.1:1", "--out", tmp_path)
    assert result.exit_code == 1
    assert "127.0.0.1:1" in result.output


def test_no_address_is_a_sentence() -> None:
    with pytest.raises(InputError, match="localhost"):
        asyncio.run(read_cluster("localhost"))


def test_an_ipv6_address_is_in_brackets() -> None:
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(read_cluster("[::1]:1"))
