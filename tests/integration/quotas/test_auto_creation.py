"""Topics that Metadata requests create on a real Kafka, under a controller mutation quota."""

import time
from collections.abc import Iterator

import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.tool_server import ServedKafka
from tests.support.messages.mutations import delete_topics, results
from tests.support.messages.requests import metadata
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
RATE = 2.0
BURST = 11 * RATE
PARTITIONS = 3
UNKNOWN = 3


@pytest.fixture(scope="module")
def creating_kafka() -> Iterator[EmbeddedKafka]:
    """A broker that creates topics, each with some partitions."""
    properties = {"auto.create.topics.enable": "true", "num.partitions": str(PARTITIONS)}
    with ServedKafka(properties=properties) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def proxy(creating_kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    limit = {"entity": {"client-id": "<default>"}, "controller_mutation_rate": RATE}
    free = {"entity": {"client-id": "free"}, "controller_mutation_rate": 1e6}
    return run_proxy(creating_kafka.bootstrap, [limit, free])


def _created(kafka: EmbeddedKafka, prefix: str) -> int:
    """How many partitions the broker has of topics that begin so."""
    with RawClient(kafka.port(1)) as client:
        topics = client.ask(metadata()).topics
    return sum(len(topic.partitions) for topic in topics if topic.name.startswith(prefix))


@pytest.mark.parametrize("version", [4, 12])
def test_topics_beyond_the_quota_remain_unknown(
    version: int, creating_kafka: EmbeddedKafka, proxy: ProxyProcess
) -> None:
    prefix = f"flood-{version}-"
    started = time.monotonic()
    with RawClient(proxy.broker_port(1), prefix) as client:
        for number in range(40):
            names = [f"{prefix}{number}-{index}" for index in range(5)]
            topics = client.ask(metadata(names, version, create=True)).topics
            # A broker on a busy machine may have created a topic before it answers.
            assert {topic.error_code for topic in topics} <= {UNKNOWN, ErrorCode.none}
    allowed = BURST + RATE * (time.monotonic() - started) + PARTITIONS
    wait_until(lambda: _created(creating_kafka, prefix) >= BURST, "the topics of the burst")
    with RawClient(proxy.broker_port(1), "free") as client:
        # The controller has done all before it does this.
        client.ask(metadata([f"free-{version}"], create=True))
    wait_until(lambda: _created(creating_kafka, f"free-{version}"), "the last topic")
    assert _created(creating_kafka, prefix) <= allowed


def test_a_client_gets_its_topic(creating_kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    """It asks until the topic is there, and pays for it once; its addresses are the proxy's."""
    with RawClient(proxy.broker_port(1), "producer") as client:

        def found() -> bool:
            response = client.ask(metadata(["wanted"], create=True))
            assert {broker.port for broker in response.brokers} == {proxy.broker_port(1)}
            return len(response.topics[0].partitions) == PARTITIONS

        wait_until(found, "the topic")
        tokens = proxy.metric("quota_proxy_controller_mutation_tokens", client_id="producer")
        assert BURST - PARTITIONS <= tokens <= BURST
        assert results(client.ask(delete_topics(["wanted"]))) == [("wanted", 0)]


def test_an_old_version_waits_for_its_turn(creating_kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    names = [f"old-{number}" for number in range(int(BURST / PARTITIONS) + 2)]
    started = time.monotonic()
    with RawClient(proxy.broker_port(1), "old") as client:
        client.ask(metadata(names, version=1))
        assert time.monotonic() - started >= (PARTITIONS * (len(names) - 1) - BURST) / RATE - 0.1
    wait_until(lambda: _created(creating_kafka, "old-") == PARTITIONS * len(names), "the topics")
