"""Kafka's own command line tools work through the proxy as with brokers."""

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import Confluent
from tests.support.kafka.topics import make_topic
from tests.support.process.proxy_process import ProxyProcess
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
COUNT = 3000


def test_producer_and_consumer_performance(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka, "perf", partitions=3)
    to_topic = ("--bootstrap-server", proxy.bootstrap, "--topic", "perf", "--num-records", str(COUNT))
    sent = kafka.run_tool("kafka-producer-perf-test", *to_topic, "--record-size", "500", "--throughput", "-1")
    assert f"{COUNT} records sent" in sent.stdout
    read = kafka.run_tool("kafka-consumer-perf-test", *to_topic, "--hide-header", "--timeout", "30000")
    columns = [column.strip() for column in read.stdout.strip().splitlines()[-1].split(",")]
    assert int(columns[4]) == COUNT


def test_topics(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    """The broker applies what the controller has done a moment later."""
    topics = ("kafka-topics", "--bootstrap-server", proxy.bootstrap)
    of_one = ("--topic", "tool-topics")
    made = kafka.run_tool(*topics, *of_one, "--create", "--partitions", "2", "--config", "retention.ms=60000")
    assert "Created topic tool-topics" in made.stdout

    def listed() -> bool:
        return "tool-topics" in kafka.run_tool(*topics, "--list").stdout.splitlines()

    def described() -> str:
        return kafka.run_tool(*topics, *of_one, "--describe").stdout

    wait_until(listed, "the topic at the broker")
    kafka.run_tool(*topics, *of_one, "--alter", "--partitions", "3")
    wait_until(lambda: "PartitionCount: 3" in described(), "the partition at the broker")
    assert "retention.ms=60000" in described()
    kafka.run_tool(*topics, *of_one, "--delete")
    wait_until(lambda: not listed(), "the topic's end at the broker")


def test_consumer_groups(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka, "tool-groups", partitions=2)
    client = Confluent(group_id="tool-groups", client_id="grouped")
    client.send(proxy.bootstrap, "tool-groups", 100)
    client.read(proxy.bootstrap, "tool-groups", 100)
    groups = ("kafka-consumer-groups", "--bootstrap-server", proxy.bootstrap)
    of_one = ("--group", "tool-groups")
    assert "tool-groups" in kafka.run_tool(*groups, "--list").stdout.splitlines()
    lines = kafka.run_tool(*groups, *of_one, "--describe").stdout.splitlines()
    ends = {line.split()[2]: line.split()[4] for line in lines if line.startswith("tool-groups ")}
    assert sum(map(int, ends.values())) == 100
    reset = ("--reset-offsets", "--to-earliest", "--execute", "--topic", "tool-groups")
    kafka.run_tool(*groups, *of_one, *reset)
    lines = kafka.run_tool(*groups, *of_one, "--describe", "--offsets").stdout.splitlines()
    assert [line.split()[3] for line in lines if line.startswith("tool-groups ")] == ["0", "0"]
    assert "successful" in kafka.run_tool(*groups, *of_one, "--delete").stdout


def test_broker_api_versions(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    """The output equals the broker's own, apart from the address."""
    through_proxy, direct = (
        kafka.run_tool("kafka-broker-api-versions", "--bootstrap-server", bootstrap).stdout
        for bootstrap in (proxy.bootstrap, kafka.bootstrap)
    )
    assert "Produce(0): 0 to " in through_proxy
    assert through_proxy == direct.replace(kafka.bootstrap, f"127.0.0.1:{proxy.broker_port(1)}")


def test_share_consumer(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka, "tool-shared", partitions=2)
    Confluent().send(proxy.bootstrap, "tool-shared", 200)
    of_group = ("--entity-type", "groups", "--entity-name", "tool-shared")
    earliest = ("--alter", "--add-config", "share.auto.offset.reset=earliest")
    kafka.run_tool("kafka-configs", "--bootstrap-server", proxy.bootstrap, *of_group, *earliest)
    from_topic = ("--bootstrap-server", proxy.bootstrap, "--topic", "tool-shared", "--group", "tool-shared")
    read = kafka.run_tool("kafka-console-share-consumer", *from_topic, "--max-messages", "200").stdout
    numbers = sorted(int(line[:8]) for line in read.splitlines())
    assert numbers == list(range(200))
    groups = ("--bootstrap-server", proxy.bootstrap, "--describe", "--group", "tool-shared")
    assert "tool-shared" in kafka.run_tool("kafka-share-groups", *groups).stdout
    assert proxy.metric("quota_proxy_requests_total", api="ShareFetch") > 0


def test_configs_of_a_topic(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka, "tool-configs")
    of_topic = (
        "--bootstrap-server",
        proxy.bootstrap,
        "--entity-type",
        "topics",
        "--entity-name",
        "tool-configs",
    )
    kafka.run_tool("kafka-configs", *of_topic, "--alter", "--add-config", "retention.ms=70000")
    wait_until(
        lambda: "retention.ms=70000" in kafka.run_tool("kafka-configs", *of_topic, "--describe").stdout,
        "the config at the broker",
    )
