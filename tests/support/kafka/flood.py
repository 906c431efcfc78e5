"""A producer that sends as much as it can."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import confluent_kafka

from tests.support.process.proxy_process import ProxyProcess


@contextmanager
def producing(proxy: ProxyProcess, topic: str, client_id: str, partitions: int = 1) -> Iterator[None]:
    """Produce through the proxy in the block, to the topic's partitions in turn."""
    stop = threading.Event()
    options = {"bootstrap.servers": proxy.bootstrap, "client.id": client_id, "batch.size": 20_000}
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
