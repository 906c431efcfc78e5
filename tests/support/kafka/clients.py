"""Real clients with the same two methods: one sends numbered messages, the other reads them.

Each sends from one idempotent producer with acks=all, and reads the topic from its beginning in a group of
its own.
"""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, Final, Protocol

import confluent_kafka
import kafka as kafka_python
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.messages.numbered import Got, key, value
from tests.support.waiting import wait_until

CLIENT_ID: Final = "client"
SECONDS: Final = 60.0


class Client(Protocol):
    """A client library or tool."""

    def send(self, bootstrap: str, topic: str, count: int, *, size: int = 100) -> None:
        """Send the messages 0 to count - 1, and return when all are acknowledged."""

    def read(self, bootstrap: str, topic: str, count: int) -> list[Got]:
        """Read until this many messages have arrived, or no more arrive."""


def new_group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


class Confluent:
    """confluent-kafka (librdkafka). `config` uses librdkafka's names with `_` in place of the dots."""

    def __init__(self, **config: Any) -> None:
        self._config = {name.replace("_", "."): setting for name, setting in config.items()}

    def producer(self, bootstrap: str, **config: Any) -> confluent_kafka.Producer:
        own = {name.replace("_", "."): setting for name, setting in config.items()}
        idempotent = {"bootstrap.servers": bootstrap, "client.id": CLIENT_ID, "enable.idempotence": True}
        return confluent_kafka.Producer({**idempotent, **self._config, **own})

    def consumer(self, bootstrap: str, **config: Any) -> confluent_kafka.Consumer:
        own = {name.replace("_", "."): setting for name, setting in config.items()}
        base = {
            "bootstrap.servers": bootstrap,
            "client.id": CLIENT_ID,
            "group.id": new_group(),
            "auto.offset.reset": "earliest",
        }
        return confluent_kafka.Consumer({**base, **self._config, **own})

    def send(self, bootstrap: str, topic: str, count: int, *, size: int = 100) -> None:
        errors: list[Any] = []
        producer = self.producer(bootstrap)
        for number in range(count):
            producer.produce(
                topic,
                value(number, size),
                key(number),
                on_delivery=lambda error, _: errors.append(error) if error else None,
            )
            producer.poll(0)
        assert producer.flush(SECONDS) == 0, "not everything was acknowledged"
        assert not errors, errors[0]

    def read(self, bootstrap: str, topic: str, count: int) -> list[Got]:
        consumer = self.consumer(bootstrap)
        consumer.subscribe([topic])
        got: list[Got] = []
        try:
            wait_until(lambda: poll_all(consumer, got) >= count, f"{count} messages", SECONDS)
            poll_all(consumer, got)
        finally:
            consumer.close()
        return got


def poll_all(consumer: confluent_kafka.Consumer, got: list[Got], timeout: float = 0.2) -> int:
    """Append messages until none arrives for `timeout` seconds; return the total number."""
    while (message := consumer.poll(timeout)) is not None:
        error = message.error()
        # librdkafka reports temporary errors and goes on by itself.
        assert error is None or error.retriable() or error.code() < 0, error
        if error is None:
            got.append(taken(message))
    return len(got)


def taken(message: confluent_kafka.Message) -> Got:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return Got(partition, offset, bytes(message.key() or b""), bytes(message.value() or b""))


class Aiokafka:
    """aiokafka; `config` is the producer's."""

    def __init__(self, **config: Any) -> None:
        self._config = config

    def send(self, bootstrap: str, topic: str, count: int, *, size: int = 100) -> None:
        asyncio.run(self._send(bootstrap, topic, count, size))

    async def _send(self, bootstrap: str, topic: str, count: int, size: int) -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, client_id=CLIENT_ID, enable_idempotence=True, **self._config
        ) as producer:
            sent = [await producer.send(topic, value(number, size), key(number)) for number in range(count)]
            await asyncio.gather(*sent)

    def read(self, bootstrap: str, topic: str, count: int) -> list[Got]:
        return asyncio.run(self._read(bootstrap, topic, count))

    async def _read(self, bootstrap: str, topic: str, count: int) -> list[Got]:
        got: list[Got] = []
        async with AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            client_id=CLIENT_ID,
            group_id=new_group(),
            auto_offset_reset="earliest",
        ) as consumer:
            async with asyncio.timeout(SECONDS):
                while len(got) < count:
                    batches = await consumer.getmany(timeout_ms=500)
                    got += [of_record(record) for records in batches.values() for record in records]
            more = await consumer.getmany(timeout_ms=200)
            got += [of_record(record) for records in more.values() for record in records]
        return got


class KafkaPython:
    """kafka-python; `config` is the producer's."""

    def __init__(self, **config: Any) -> None:
        self._config = config

    def send(self, bootstrap: str, topic: str, count: int, *, size: int = 100) -> None:
        producer = kafka_python.KafkaProducer(
            bootstrap_servers=bootstrap, client_id=CLIENT_ID, enable_idempotence=True, **self._config
        )
        try:
            sent = [
                producer.send(topic, value=value(number, size), key=key(number)) for number in range(count)
            ]
            for one in sent:
                one.get(SECONDS)
        finally:
            producer.close()

    def read(self, bootstrap: str, topic: str, count: int) -> list[Got]:
        consumer = kafka_python_consumer(
            topic,
            bootstrap_servers=bootstrap,
            client_id=CLIENT_ID,
            group_id=new_group(),
            auto_offset_reset="earliest",
        )
        got: list[Got] = []

        def poll(timeout_ms: int) -> bool:
            batches = consumer.poll(timeout_ms=timeout_ms)
            got.extend(of_record(record) for records in batches.values() for record in records)
            return len(got) >= count

        try:
            wait_until(lambda: poll(500), f"{count} messages", SECONDS)
            poll(200)
        finally:
            consumer.close()
        return got


def kafka_python_consumer(topic: str, **settings: Any) -> Any:
    """A consumer of kafka-python that subscribes when it has the topic's metadata.

    If it subscribes during a Metadata request, it does not get those of the topic, and as the leader of its
    group it then assigns no partitions.
    """
    consumer = kafka_python.KafkaConsumer(**settings)
    try:
        wait_until(lambda: consumer.partitions_for_topic(topic), f"the partitions of {topic}", SECONDS)
    except BaseException:
        consumer.close()
        raise
    consumer.subscribe([topic])
    return consumer


def of_record(record: Any) -> Got:
    """Convert a record of aiokafka or kafka-python."""
    return Got(record.partition, record.offset, record.key or b"", record.value or b"")


class Java:
    """Kafka's own console tools; `extra` goes to the consumer."""

    def __init__(self, kafka: EmbeddedKafka, *extra: str) -> None:
        self._kafka = kafka
        self._extra = extra

    def send(self, bootstrap: str, topic: str, count: int, *, size: int = 100) -> None:
        lines = (key(number) + b"=" + value(number, size) for number in range(count))
        self._kafka.run_tool(
            "kafka-console-producer",
            *("--bootstrap-server", bootstrap, "--topic", topic),
            *("--reader-property", "parse.key=true", "--reader-property", "key.separator=="),
            *("--command-property", f"client.id={CLIENT_ID}"),
            input="".join(line.decode() + "\n" for line in lines),
        )

    def read(self, bootstrap: str, topic: str, count: int) -> list[Got]:
        shown = ("partition", "offset", "key", "value")
        output = self._kafka.run_tool(
            "kafka-console-consumer",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"),
            *("--max-messages", str(count), "--timeout-ms", str(int(SECONDS * 1000))),
            *(part for name in shown for part in ("--formatter-property", f"print.{name}=true")),
            *("--command-property", f"client.id={CLIENT_ID}"),
            *self._extra,
        ).stdout
        return [_parsed(line) for line in output.splitlines()]


def _parsed(line: str) -> Got:
    partition, offset, name, message = line.split("\t")
    return Got(
        int(partition.removeprefix("Partition:")),
        int(offset.removeprefix("Offset:")),
        name.encode(),
        message.encode(),
    )


CLIENTS: Final[dict[str, Callable[[EmbeddedKafka], Client]]] = {
    "confluent-kafka": lambda kafka: Confluent(),
    "aiokafka": lambda kafka: Aiokafka(),
    "kafka-python": lambda kafka: KafkaPython(),
    "java": Java,
}
