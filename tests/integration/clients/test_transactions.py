"""Transactions commit and abort through the proxy; read_committed consumers see only committed messages."""

import asyncio
from collections.abc import Callable

import confluent_kafka
import kafka as kafka_python
import pytest
from aiokafka import AIOKafkaProducer

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import Confluent, new_group, poll_all
from tests.support.kafka.topics import make_topic
from tests.support.messages.numbered import Got, key, number, value
from tests.support.process.proxy_process import ProxyProcess
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
FIRST, ABORTED, LAST = range(10), range(10, 20), range(20, 30)


def _with_confluent(bootstrap: str, topic: str) -> None:
    producer = Confluent().producer(bootstrap, transactional_id=topic)
    producer.init_transactions()
    for numbers in (FIRST, ABORTED, LAST):
        producer.begin_transaction()
        for each in numbers:
            producer.produce(topic, value(each), key(each))
        if numbers is ABORTED:
            assert producer.flush(30) == 0
            producer.abort_transaction()
        else:
            producer.commit_transaction()


def _with_aiokafka(bootstrap: str, topic: str) -> None:
    async def run() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
            for numbers in (FIRST, ABORTED, LAST):
                await producer.begin_transaction()
                for each in numbers:
                    await producer.send_and_wait(topic, value(each), key(each))
                await (producer.abort_transaction() if numbers is ABORTED else producer.commit_transaction())

    asyncio.run(run())


def _with_kafka_python(bootstrap: str, topic: str) -> None:
    producer = kafka_python.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    try:
        producer.init_transactions()
        for numbers in (FIRST, ABORTED, LAST):
            producer.begin_transaction()
            for sent in [producer.send(topic, value(each), key(each)) for each in numbers]:
                sent.get(30)
            (producer.abort_transaction if numbers is ABORTED else producer.commit_transaction)()
    finally:
        producer.close()


WRITERS: dict[str, Callable[[str, str], None]] = {
    "confluent-kafka": _with_confluent,
    "aiokafka": _with_aiokafka,
    "kafka-python": _with_kafka_python,
}


def _read(bootstrap: str, topic: str, count: int, isolation: str) -> list[int]:
    consumer = Confluent().consumer(bootstrap, isolation_level=isolation)
    consumer.subscribe([topic])
    got: list[Got] = []
    wait_until(lambda: poll_all(consumer, got) >= count, f"{count} messages of {topic}")
    poll_all(consumer, got)
    consumer.close()
    return sorted(number(message.value) for message in got)


@pytest.mark.parametrize("name", WRITERS)
def test_only_the_committed_is_seen(name: str, kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    topic = f"transactions-{name}"
    make_topic(kafka, topic, partitions=3)
    WRITERS[name](proxy.bootstrap, topic)
    assert _read(proxy.bootstrap, topic, 20, "read_committed") == [*FIRST, *LAST]
    assert _read(proxy.bootstrap, topic, 30, "read_uncommitted") == [*FIRST, *ABORTED, *LAST]


def test_java_commits(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka, "transactions-java", partitions=3)
    kafka.run_tool(
        "kafka-producer-perf-test",
        *("--bootstrap-server", proxy.bootstrap, "--topic", "transactions-java", "--num-records", "1000"),
        *("--throughput", "-1", "--payload-monotonic"),
        *("--transactional-id", "transactions-java", "--transaction-duration-ms", "50"),
    )
    from_topic = ("--bootstrap-server", proxy.bootstrap, "--topic", "transactions-java", "--from-beginning")
    committed = ("--isolation-level", "read_committed", "--max-messages", "1000", "--timeout-ms", "30000")
    lines = kafka.run_tool("kafka-console-consumer", *from_topic, *committed).stdout.splitlines()
    assert sorted(map(int, lines)) == list(range(1000))


def test_offsets_are_part_of_a_transaction(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    """A consume-transform-produce loop: offsets of an aborted transaction are not committed."""
    group = new_group()
    make_topic(kafka, f"{group}-in")
    make_topic(kafka, f"{group}-out")
    Confluent().send(proxy.bootstrap, f"{group}-in", 10)
    consumer = Confluent().consumer(proxy.bootstrap, group_id=group, enable_auto_commit=False)
    consumer.subscribe([f"{group}-in"])
    got: list[Got] = []
    wait_until(lambda: poll_all(consumer, got) == 10, "ten messages")
    producer = Confluent().producer(proxy.bootstrap, transactional_id=group)
    producer.init_transactions()
    place = confluent_kafka.TopicPartition(f"{group}-in", 0)
    committed = []
    for offset, end in ((7, producer.abort_transaction), (4, producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(f"{group}-out", b"x")
        read = confluent_kafka.TopicPartition(f"{group}-in", 0, offset)
        producer.send_offsets_to_transaction([read], consumer.consumer_group_metadata())
        end()
        committed.append(consumer.committed([place], timeout=30)[0].offset)
    consumer.close()
    assert committed == [confluent_kafka.OFFSET_INVALID, 4]
