"""`python -m tests.interop.muted.client LIBRARY produce|consume BOOTSTRAP CLIENT_ID TOPIC LARGE SMALL`.

A client of a Python library with its default settings. It sends a message of LARGE bytes, waits for the
acknowledgement, and sends SMALL messages of 100 bytes, one every half second; or it reads them as the only
member of a group. It writes what happens, a line each: `acked N`, `failed N ERROR`, `got N`, `assigned`, and
`done` at the end. Then it waits for the end of its input.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import confluent_kafka
import kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener

from proxy.tasks import Tasks

BETWEEN_SECONDS: Final = 0.5
SMALL_BYTES: Final = 100


def say(text: str) -> None:
    print(text, flush=True)


def value(number: int, size: int = SMALL_BYTES) -> bytes:
    return (b"%08d" % number).ljust(size, b".")


def number_of(message: bytes) -> int:
    return int(message[:8])


def failed(number: int, error: object) -> None:
    say(f"failed {number} {type(error).__name__ if isinstance(error, Exception) else error}")


class Confluent:
    """confluent-kafka, on librdkafka."""

    def __init__(self, bootstrap: str, client_id: str, topic: str) -> None:
        self._settings: Final = {"bootstrap.servers": bootstrap, "client.id": client_id}
        self._topic: Final = topic

    def produce(self, large: int, small: int) -> None:
        producer = confluent_kafka.Producer(self._settings)

        def send(number: int, size: int) -> None:
            def delivered(error: Any, _: Any) -> None:
                if error is None:
                    say(f"acked {number}")
                else:
                    failed(number, error.name())

            producer.produce(self._topic, value(number, size), on_delivery=delivered)

        send(0, large)
        producer.flush()
        for number in range(1, small + 1):
            send(number, SMALL_BYTES)
            producer.poll(BETWEEN_SECONDS)
            time.sleep(BETWEEN_SECONDS)
        producer.flush()

    def consume(self, small: int) -> None:
        group = {"group.id": self._settings["client.id"], "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer({**self._settings, **group})
        consumer.subscribe([self._topic], on_assign=lambda *_: say("assigned"))
        last = -1
        while last < small:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                last = number_of(message.value() or b"")
                say(f"got {last}")


class KafkaPython:
    """kafka-python."""

    def __init__(self, bootstrap: str, client_id: str, topic: str) -> None:
        self._settings: Final = {"bootstrap_servers": bootstrap, "client_id": client_id}
        self._client_id: Final = client_id
        self._topic: Final = topic

    def produce(self, large: int, small: int) -> None:
        producer = kafka.KafkaProducer(**self._settings)

        def send(number: int, size: int) -> Any:
            sent = producer.send(self._topic, value(number, size))
            sent.add_callback(lambda *_: say(f"acked {number}"))
            sent.add_errback(lambda error: failed(number, error))
            return sent

        waited = send(0, large)
        producer.flush()
        assert waited.is_done
        sent = []
        for number in range(1, small + 1):
            sent.append(send(number, SMALL_BYTES))
            time.sleep(BETWEEN_SECONDS)
        while not all(each.is_done for each in sent):
            time.sleep(BETWEEN_SECONDS)

    def consume(self, small: int) -> None:
        consumer = kafka.KafkaConsumer(
            group_id=self._client_id, auto_offset_reset="earliest", **self._settings
        )

        class Listener(kafka.ConsumerRebalanceListener):
            def on_partitions_revoked(self, revoked: Any) -> None: ...

            def on_partitions_assigned(self, assigned: Any) -> None:
                say("assigned")

        consumer.subscribe([self._topic], listener=Listener())
        for message in consumer:
            number = number_of(message.value)
            say(f"got {number}")
            if number >= small:
                return


class AioKafka:
    """aiokafka."""

    def __init__(self, bootstrap: str, client_id: str, topic: str) -> None:
        self._settings: Final = {"bootstrap_servers": bootstrap, "client_id": client_id}
        self._client_id: Final = client_id
        self._topic: Final = topic

    def produce(self, large: int, small: int) -> None:
        asyncio.run(self._produce(large, small))

    async def _produce(self, large: int, small: int) -> None:
        producer = AIOKafkaProducer(**self._settings)
        await producer.start()

        async def send(number: int, size: int) -> None:
            try:
                await producer.send_and_wait(self._topic, value(number, size))
            except kafka.errors.KafkaError as error:
                failed(number, error)
            except Exception as error:  # noqa: BLE001 - whatever it is, the table has to say so
                failed(number, error)
            else:
                say(f"acked {number}")

        await send(0, large)
        sent, tasks = [], Tasks()
        for number in range(1, small + 1):
            sent.append(tasks.start(send(number, SMALL_BYTES)))
            await asyncio.sleep(BETWEEN_SECONDS)
        await asyncio.gather(*sent)

    def consume(self, small: int) -> None:
        asyncio.run(self._consume(small))

    async def _consume(self, small: int) -> None:
        consumer = AIOKafkaConsumer(group_id=self._client_id, auto_offset_reset="earliest", **self._settings)

        class Listener(ConsumerRebalanceListener):
            def on_partitions_revoked(self, revoked: Any) -> None: ...

            def on_partitions_assigned(self, assigned: Any) -> None:
                say("assigned")

        consumer.subscribe([self._topic], listener=Listener())
        await consumer.start()
        async for message in consumer:
            number = number_of(message.value or b"")
            say(f"got {number}")
            if number >= small:
                return


LIBRARIES: Final[dict[str, Callable[[str, str, str], Any]]] = {
    "confluent": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": AioKafka,
}


def main(library: str, role: str, bootstrap: str, client_id: str, topic: str, large: str, small: str) -> None:
    client = LIBRARIES[library](bootstrap, client_id, topic)
    if role == "produce":
        client.produce(int(large), int(small))
    else:
        client.consume(int(small))
    say("done")
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
