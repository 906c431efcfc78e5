"""A producer that sends as much as it can."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import confluent_kafka


class Reachable(Protocol):
    """A proxy, or the brokers."""

    @property
    def bootstrap(self) -> str: ...


@contextmanager
def producing(through: Reachable, topic: str, client_id: str, partitions: int = 1) -> Iterator[None]:
    """Produce through a proxy, or to the brokers, in the block, to the topic's partitions in turn."""
    stop = threading.Event()
    options = {"bootstrap.servers": through.bootstrap, "client.id": client_id, "batch.size": 20_000}
    producer = confluent_kafka.Producer({**options, "queue.buffering.max.messages": 200, "log_level": 0})

    def work() -> None:
        sent = 0
        while not stop.is_set():
            try:
                producer.produce(topic, bytes(1000), partition=sent % partitions)
                sent += 1
            except BufferError:
                producer.poll(0.01)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        producer.purge()
