"""A cluster's partitions, as a real Kafka describes them, and a plan out of that."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from pipeline.errors import InputError
from pipeline.log_dirs import read_cluster
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import Confluent
from tests.support.kafka.topics import make_topic


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
    assert "cannot read the partitions from 127.0.0.1:1" in result.output


def test_no_address_is_a_sentence() -> None:
    with pytest.raises(InputError, match="is no HOST:PORT"):
        asyncio.run(read_cluster("localhost"))
