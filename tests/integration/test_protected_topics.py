"""A client with every right on the topics of the proxy changes nothing about them through the proxy."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.admin_requests import alter, ask
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import describe_topic, make_topic
from tests.support.kafka.usage_topic import events_of
from tests.support.messages.configs import SET, TOPIC, incremental_request, results
from tests.support.messages.kio_messages import versions
from tests.support.messages.mutations import create_partitions, create_topics, delete_topics
from tests.support.messages.records import delete_records
from tests.support.messages.requests import TOPIC_IDS_FROM, batch, fetch, metadata, produce
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
    with RawClient(front.broker_port(1)) as client:
        [topic] = client.ask(fetch(USAGE)).responses
    assert topic.partitions[0].error_code == ErrorCode.none
    assert topic.partitions[0].records
