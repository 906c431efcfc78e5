"""A client with every right on the topics of the proxy changes nothing about them through the proxy."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from confluent_kafka import KafkaError
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.admin_requests import alter, ask
from tests.support.kafka.clients import Confluent, poll_all
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import describe_topic, make_topic, read_log
from tests.support.kafka.usage_topic import events_of
from tests.support.messages.configs import SET, TOPIC, incremental_request, results
from tests.support.messages.kio_messages import versions
from tests.support.messages.mutations import create_partitions, create_topics, delete_topics
from tests.support.messages.numbered import Got
from tests.support.messages.records import delete_records
from tests.support.messages.requests import TOPIC_IDS_FROM, batch, metadata, produce
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
STORE, USAGE = "protected-store", "protected-usage"
DENIED = ErrorCode.topic_authorization_failed
FORGED = b'{"value": 1e12}'


@pytest.fixture(scope="module")
def front(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> Iterator[ProxyProcess]:
    """A proxy whose store has a quota of bob."""
    settings = {
        "quotas": {"store": {"topic": STORE}},
        "usage": {"interval_seconds": 1, "kafka": {"topic": USAGE}},
    }
    proxy = run_proxy(kafka.bootstrap, settings=settings)
    assert alter(proxy.broker_port(1), {"user": "bob"}, producer_byte_rate=5.0) == ErrorCode.none
    wait_until(lambda: events_of(kafka, USAGE) != [], "an event")
    yield proxy
    kept = "the store still takes changes"
    assert alter(proxy.broker_port(1), {"user": "bob"}, producer_byte_rate=None) == ErrorCode.none, kept


def id_of(port: int, name: str) -> UUID:
    [topic] = ask(port, metadata([name])).topics
    return UUID(str(topic.topic_id))


def size_of(kafka: EmbeddedKafka, topic: str) -> int:
    return sum(len(records) for records in read_log(kafka, topic))


@pytest.mark.parametrize("topic", [STORE, USAGE])
@pytest.mark.parametrize("version", [version for version in versions(0) if version >= 3])
def test_no_record_is_forged(kafka: EmbeddedKafka, front: ProxyProcess, topic: str, version: int) -> None:
    topic_id = id_of(kafka.port(1), topic)
    with RawClient(front.broker_port(1)) as client:

        def code() -> ErrorCode:
            request = produce(topic, batch([FORGED]), version, topic_id=topic_id)
            [told] = client.ask(request).responses
            return ErrorCode(told.partition_responses[0].error_code)

        if version >= TOPIC_IDS_FROM:
            wait_until(lambda: code() == DENIED, "the proxy to know the id")
        assert code() == DENIED


def test_nothing_else_changes_them(kafka: EmbeddedKafka, front: ProxyProcess) -> None:
    port, direct = front.broker_port(1), kafka.port(1)
    make_topic(kafka, "protected-none", 1)
    before = describe_topic(direct, STORE)
    created = ask(port, create_topics({STORE: 1, "__quota_proxy_shares": 1})).topics
    assert {topic.error_code for topic in created} == {DENIED}
    for request in (delete_topics([STORE]), delete_topics(ids=[id_of(direct, STORE)])):
        assert [topic.error_code for topic in ask(port, request).responses] == [DENIED]
    assert [topic.error_code for topic in ask(port, create_partitions({STORE: 5})).results] == [DENIED]
    records = ask(port, delete_records({STORE: {0: -1}, "protected-none": {0: 0}})).topics
    codes = {topic.name: topic.partitions[0].error_code for topic in records}
    assert codes == {STORE: DENIED, "protected-none": ErrorCode.none}
    request = incremental_request([((TOPIC, STORE), [("retention.ms", SET, "1")])])
    assert [code for _, code, _ in results(ask(port, request))] == [DENIED]
    assert describe_topic(direct, STORE) == before


def test_usage_events_are_read_through_the_proxy(front: ProxyProcess) -> None:
    consumer = Confluent().consumer(front.bootstrap)
    consumer.subscribe([USAGE])
    got: list[Got] = []
    wait_until(lambda: poll_all(consumer, got), "an event")
    consumer.close()


def test_a_transaction_leaves_nothing_that_keeps_a_proxy_from_loading(
    kafka: EmbeddedKafka, front: ProxyProcess, run_proxy: ProxyRunner
) -> None:
    producer = Confluent().producer(front.bootstrap, transactional_id="protected", linger_ms=0)
    producer.init_transactions(60.0)
    producer.begin_transaction()
    errors: list[KafkaError | None] = []
    producer.produce(STORE, FORGED, on_delivery=lambda error, _: errors.append(error))
    producer.flush(60.0)
    assert [error and error.code() for error in errors] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    before = size_of(kafka, STORE)
    producer.abort_transaction(60.0)
    wait_until(lambda: size_of(kafka, STORE) > before, "the transaction's marker")
    restarted = run_proxy(kafka.bootstrap, settings={"quotas": {"store": {"topic": STORE}}})
    assert "loaded 1 records" in restarted.log
