"""Members of consumer groups, of several client libraries, with the same methods."""

import asyncio
import json
import queue
import signal
import threading
from typing import Any, Final, Protocol

from aiokafka import AIOKafkaConsumer

from proxy.demo.children import reap
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import Confluent, kafka_python_consumer, of_record, poll_all
from tests.support.messages.numbered import Got

POLL_SECONDS: Final = 0.1
KAFKA_PYTHON_POLL_SECONDS: Final = 2.0
"""Longer than a join takes. A member sometimes sent no heartbeat after a join. The probable cause, from the
code of kafka-python 3.0: it does not take the result of a join that ends after a poll has timed out.
"""
LEAVE_SECONDS: Final = 60.0


class Member(Protocol):
    """A member joins its group when it is created."""

    def poll(self) -> list[Got]:
        """Return the messages since the last call. A member has to be polled to take part in a rebalance."""

    def partitions(self) -> set[int]:
        """The partitions that are assigned to the member."""

    def leave(self) -> None:
        """Leave the group."""


class ConfluentMember:
    """confluent-kafka; `protocol` is classic or consumer (KIP-848)."""

    def __init__(self, bootstrap: str, topic: str, group: str, protocol: str) -> None:
        self._consumer = Confluent().consumer(bootstrap, group_id=group, group_protocol=protocol)
        self._consumer.subscribe([topic])

    def poll(self) -> list[Got]:
        got: list[Got] = []
        poll_all(self._consumer, got, POLL_SECONDS)
        return got

    def partitions(self) -> set[int]:
        return {assigned.partition for assigned in self._consumer.assignment()}

    def leave(self) -> None:
        self._consumer.close()


class KafkaPythonMember:
    """kafka-python, in a thread of its own, because a rebalance needs several of its polls."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self._consumer = kafka_python_consumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=500,
        )
        self._got: queue.SimpleQueue[Got] = queue.SimpleQueue()
        self._partitions: set[int] = set()
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kafka-python")
        self._thread.start()

    def _run(self) -> None:
        while not self._leaving.is_set():
            batches = self._consumer.poll(timeout_ms=int(KAFKA_PYTHON_POLL_SECONDS * 1000))
            for record in (record for records in batches.values() for record in records):
                self._got.put(of_record(record))
            self._partitions = {assigned.partition for assigned in self._consumer.assignment()}
        self._consumer.close()

    def poll(self) -> list[Got]:
        return _drained(self._got)

    def partitions(self) -> set[int]:
        return self._partitions

    def leave(self) -> None:
        self._leaving.set()
        self._thread.join()


class AiokafkaMember:
    """aiokafka, in a thread with its own event loop."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aiokafka")
        self._thread.start()
        self._consumer = self._run(self._join(bootstrap, topic, group))

    async def _join(self, bootstrap: str, topic: str, group: str) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=500,
        )
        await consumer.start()
        return consumer

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def poll(self) -> list[Got]:
        batches = self._run(self._consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000)))
        return [of_record(record) for records in batches.values() for record in records]

    def partitions(self) -> set[int]:
        return {assigned.partition for assigned in self._consumer.assignment()}

    def leave(self) -> None:
        self._run(self._consumer.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class JavaMember:
    """Kafka's verifiable consumer, which prints its events as JSON."""

    def __init__(self, kafka: EmbeddedKafka, bootstrap: str, topic: str, group: str, protocol: str) -> None:
        self._process = kafka.start_tool(
            "kafka-verifiable-consumer",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--group-id", group),
            *("--group-protocol", protocol, "--verbose", "--enable-autocommit"),
        )
        self._got: queue.SimpleQueue[Got] = queue.SimpleQueue()
        self._partitions: frozenset[int] = frozenset()
        self._thread = threading.Thread(target=self._listen, name="verifiable-consumer")
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            named = {found["partition"] for found in event.get("partitions", ())}
            if event["name"] == "partitions_assigned":
                self._partitions |= named
            elif event["name"] == "partitions_revoked":
                self._partitions -= named
            elif event["name"] == "record_data":
                key, value = (event[part].encode() for part in ("key", "value"))
                self._got.put(Got(event["partition"], event["offset"], key, value))

    def poll(self) -> list[Got]:
        return _drained(self._got)

    def partitions(self) -> set[int]:
        return set(self._partitions)

    def leave(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(LEAVE_SECONDS)
        self._thread.join()
        reap(self._process)


def _drained(waiting: queue.SimpleQueue[Got]) -> list[Got]:
    return [waiting.get() for _ in range(waiting.qsize())]


class Join(Protocol):
    """Creates a member of a group."""

    def __call__(self, kafka: EmbeddedKafka, bootstrap: str, topic: str, group: str) -> Member: ...


MEMBERS: Final[dict[str, Join]] = {
    "confluent-kafka": lambda kafka, bootstrap, topic, group: ConfluentMember(
        bootstrap, topic, group, "classic"
    ),
    "confluent-kafka, KIP-848": lambda kafka, bootstrap, topic, group: ConfluentMember(
        bootstrap, topic, group, "consumer"
    ),
    "java": lambda kafka, bootstrap, topic, group: JavaMember(kafka, bootstrap, topic, group, "classic"),
    "java, KIP-848": lambda kafka, bootstrap, topic, group: JavaMember(
        kafka, bootstrap, topic, group, "consumer"
    ),
    "aiokafka": lambda kafka, bootstrap, topic, group: AiokafkaMember(bootstrap, topic, group),
    "kafka-python": lambda kafka, bootstrap, topic, group: KafkaPythonMember(bootstrap, topic, group),
}
