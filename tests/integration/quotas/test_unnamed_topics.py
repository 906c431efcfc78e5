"""Topic ids that the proxy does not know yet, on a real Kafka: quotas count their first records."""

import time
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import drop_topic, make_topic, read_log
from tests.support.messages.requests import TOPIC_IDS_FROM, batch, produce
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
RATE: Final = 100_000
SIZE: Final = 500_000


@pytest.fixture(scope="module")
def limited(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    """A proxy with a limit for every topic."""
    quotas = {"store": "none", "topics": {"<default>": {"producer.byte.rate": RATE}}}
    return run_proxy(kafka.bootstrap, settings={"quotas": quotas})


def told(port: int, topic_id: UUID, size: int = 100) -> Any:
    """The response to a record of so many bytes for a topic's partition 0."""
    with RawClient(port) as client:
        return client.ask(produce("", batch([bytes(size)]), TOPIC_IDS_FROM, topic_id=topic_id))


def test_the_first_request_to_a_topic_that_was_created_again_is_counted(
    kafka: EmbeddedKafka, limited: ProxyProcess
) -> None:
    ids = set()
    for _ in range(3):
        topic_id = make_topic(kafka, "created-again")
        began = time.monotonic()
        response = told(limited.broker_port(1), topic_id, SIZE)
        passed = time.monotonic() - began
        [partition] = response.responses[0].partition_responses
        assert partition.error_code == ErrorCode.none
        # The response announces what is left of the wait.
        assert passed + response.throttle_time.total_seconds() > (SIZE - RATE) / RATE * 0.9
        ids.add(topic_id)
        drop_topic(kafka, "created-again")
    assert len(ids) == 3


def test_a_made_up_id_gets_the_brokers_error(kafka: EmbeddedKafka, limited: ProxyProcess) -> None:
    for topic_id in (uuid4(), uuid4()):
        straight = told(kafka.port(1), topic_id)
        [partition] = straight.responses[0].partition_responses
        assert partition.error_code == ErrorCode.unknown_topic_id
        assert told(limited.broker_port(1), topic_id) == straight


def test_without_responses_a_made_up_id_ends_the_connection(
    kafka: EmbeddedKafka, limited: ProxyProcess
) -> None:
    for port in (kafka.port(1), limited.broker_port(1)):
        with RawClient(port) as client:
            request = produce("", batch([b"x"]), TOPIC_IDS_FROM, topic_id=uuid4(), acks=0)
            client.send(request, expects_response=False)
            assert client.ended()
    wait_until(lambda: limited.log_lines("acks=0 names a topic by an id"), "the log's line")


def test_a_large_request_to_a_new_topic_is_stored_and_one_to_a_made_up_id_is_not(
    kafka: EmbeddedKafka, limited: ProxyProcess
) -> None:
    topic_id = make_topic(kafka, "large-and-new", max_message_bytes=8 << 20)
    response = told(limited.broker_port(1), topic_id, 3 << 20)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.none
    assert sum(len(records) for records in read_log(kafka, "large-and-new")) > 3 << 20
    with RawClient(limited.broker_port(1)) as client:
        client.send(produce("", batch([bytes(3 << 20)]), TOPIC_IDS_FROM, topic_id=uuid4()))
        assert client.ended()
    wait_until(lambda: limited.log_lines("topic id .* which the cluster lacks"), "the log's line")
