"""Brokers stop, start and move, and leaders change: no message is lost or duplicated."""

import json
from functools import partial
from pathlib import Path

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.kafka.broker_probe import live_brokers
from tests.support.kafka.clients import Confluent, poll_all
from tests.support.kafka.load import Load
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.tap import Tap
from tests.support.kafka.tool_server import ServedKafka
from tests.support.kafka.topics import drop_topic, leaders, make_topic
from tests.support.messages.numbered import Got, check_all_there, key, number, value
from tests.support.messages.requests import api_versions
from tests.support.process.proxy_process import HOST, ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def proxy(kafka_cluster: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    """A proxy before three brokers."""
    return run_proxy(kafka_cluster.bootstrap)


def test_a_broker_restarts_under_load(kafka_cluster: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka_cluster, "restart", partitions=6, replicas=3, min_insync_replicas=2)
    with Load(proxy.bootstrap, "restart", 6) as load:
        load.go_on()
        kafka_cluster.stop(2)
        load.go_on()
        kafka_cluster.start(2)
        load.go_on()
        load.check()


def test_leaders_move_under_load(kafka_cluster: EmbeddedKafka, proxy: ProxyProcess, tmp_path: Path) -> None:
    """One leader moves by a reassignment, one by an election, both with Kafka's tools."""
    make_topic(kafka_cluster, "moves", on=[(1, 2), (1, 2)])
    moves = [
        {"topic": "moves", "partition": 0, "replicas": [2, 3]},
        {"topic": "moves", "partition": 1, "replicas": [2, 1]},
    ]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    of_server = ("--bootstrap-server", proxy.bootstrap)
    with Load(proxy.bootstrap, "moves", 2) as load:
        load.go_on()
        kafka_cluster.run_tool(
            "kafka-reassign-partitions", *of_server, "--reassignment-json-file", str(plan), "--execute"
        )
        wait_until(lambda: leaders(kafka_cluster, "moves")[0] == 2, "the reassigned partition's new leader")
        load.go_on()
        of_partition = ("--election-type", "preferred", "--topic", "moves", "--partition", "1")
        kafka_cluster.run_tool("kafka-leader-election", *of_server, *of_partition)
        wait_until(lambda: leaders(kafka_cluster, "moves")[1] == 2, "the elected leader")
        load.go_on()
        load.check()


def test_a_broker_that_joins_gets_its_port(kafka_cluster: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    kafka_cluster.stop(3)
    try:
        for other in (1, 2):
            wait_until(partial(_sees, kafka_cluster, other, {1, 2}), f"broker {other} sees 3 go")
        proxy = run_proxy(kafka_cluster.bootstrap)
        # Ports of brokers that may exist listen while the proxy starts.
        wait_until(lambda: not proxy.listens_for(3), "no port of the broker that has gone")
    finally:
        kafka_cluster.start(3)
    wait_until(lambda: proxy.listens_for(3), "the port of the broker that joined")
    make_topic(kafka_cluster, "joined", on=[(3,)])
    client = Confluent()
    client.send(proxy.bootstrap, "joined", 100)
    check_all_there(client.read(proxy.bootstrap, "joined", 100), 100)
    assert len(proxy.log_lines(r"port of broker 3 is \d+")) == 1


def test_a_broker_that_moves_is_followed(run_proxy: ProxyRunner) -> None:
    """A broker advertises another address after a restart: that of a tap."""
    with ServedKafka() as kafka:
        proxy = run_proxy(kafka.bootstrap)
        make_topic(kafka, "moved")
        producer = Confluent().producer(proxy.bootstrap)
        producer.produce("moved", b"before")
        assert producer.flush(60) == 0
        port = kafka.port(1)
        kafka.stop(1)
        with Tap({("127.0.0.3", port): (HOST, port)}) as tap:
            _advertise(kafka, f"127.0.0.3:{port}")
            kafka.start(1)
            wait_until(lambda: proxy.log_lines(f"broker 1 is 127.0.0.3:{port}"), "the proxy's noticing")
            producer.produce("moved", b"after")
            assert producer.flush(60) == 0
            with RawClient(proxy.broker_port(1)) as client:
                client.ask(api_versions())
            assert tap.streams, "the broker is reached at its new address"


def test_a_topic_is_deleted_and_made_again(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """The new topic has another id; a producer and a consumer continue with it."""
    bootstrap = run_proxy(kafka.bootstrap).bootstrap
    first_id = make_topic(kafka, "again")
    producer = Confluent().producer(bootstrap, enable_idempotence=False)
    consumer = Confluent().consumer(bootstrap)
    consumer.subscribe(["again"])
    got: list[Got] = []

    def send_and_read(numbers: range) -> None:
        got.clear()
        for each in numbers:
            producer.produce("again", value(each), key(each))
        assert producer.flush(60) == 0
        wait_until(lambda: poll_all(consumer, got) >= len(numbers), f"messages {numbers}", 60)
        assert [number(message.value) for message in got] == list(numbers)

    send_and_read(range(100))
    drop_topic(kafka, "again")
    assert make_topic(kafka, "again") != first_id
    send_and_read(range(100, 150))
    consumer.close()


def _sees(kafka: EmbeddedKafka, node_id: int, brokers: set[int]) -> bool:
    return live_brokers(kafka.port(node_id), 5.0) == brokers


def _advertise(kafka: EmbeddedKafka, address: str) -> None:
    properties = kafka.folder / "node-1" / "server.properties"
    own = f"advertised.listeners=PLAINTEXT://{HOST}:{kafka.port(1)}"
    text = properties.read_text()
    assert own in text
    properties.write_text(text.replace(own, f"advertised.listeners=PLAINTEXT://{address}"))
