"""Producers that a quota rejects: what they report as failed is not in the log.

The producers are librdkafka's, without idempotence. Their messages expire while quotas reject them.
"""

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import Confluent
from tests.support.kafka.topics import make_topic, read_log
from tests.support.messages.numbered import value
from tests.support.process.proxy_process import ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
LIMIT: Final = 100_000
RATE: Final = 75_000
"""Of each producer."""
PRODUCERS: Final = 4
SIZE: Final = 1000
EXPIRE_MS: Final = 3000
FAILED: Final = 4000
"""How many messages have to fail before a test looks at them."""
QUOTAS: Final[dict[str, dict[str, Any]]] = {
    "producer.byte.rate": {
        "topics": {"<default>": {"producer.byte.rate": LIMIT, "producer.byte.rate.action": "reject"}}
    },
    "total.bytes.in.per.sec.threshold": {
        "topics": {"<default>": {"bytes.in.per.sec.threshold": LIMIT}},
        "brokers": {"<default>": {"total.bytes.in.per.sec.threshold": LIMIT}},
    },
}


class Expiring:
    """Sends messages in large batches, numbered from `first` on, and records what becomes of them."""

    def __init__(self, bootstrap: str, topic: str, first: int) -> None:
        config = {"message.timeout.ms": EXPIRE_MS, "linger.ms": 500, "batch.size": 1_000_000}
        idempotent = {"enable.idempotence": False}
        self._producer = Confluent().producer(bootstrap, **config, **idempotent)
        self._topic = topic
        self._next = first
        self.stored: Final[set[int]] = set()
        self.failed: Final[set[int]] = set()

    def run(self, rate: int, stop: threading.Event) -> None:
        start, first = time.monotonic(), self._next
        while not stop.is_set():
            while (self._next - first) * SIZE < (time.monotonic() - start) * rate:
                self._send(self._next)
                self._next += 1
            self._producer.poll(0.05)
        assert self._producer.flush(60) == 0
        del self._producer

    def _send(self, number: int) -> None:
        def reported(error: Any, _: Any) -> None:
            (self.stored if error is None else self.failed).add(number)

        self._producer.produce(self._topic, value(number, SIZE), on_delivery=reported)


@pytest.mark.parametrize("quota", QUOTAS)
def test_what_expires_while_it_is_rejected_is_not_in_the_log(
    kafka: EmbeddedKafka, run_proxy: ProxyRunner, quota: str
) -> None:
    topic = f"expiring-{quota}"
    make_topic(kafka, topic)
    proxy = run_proxy(kafka.bootstrap, settings={"quotas": {"store": "none", **QUOTAS[quota]}})
    producers = [Expiring(proxy.bootstrap, topic, 10_000_000 * number) for number in range(1, PRODUCERS + 1)]
    stop = threading.Event()
    with ThreadPoolExecutor() as pool:
        running = [pool.submit(each.run, RATE, stop) for each in producers]
        try:
            wait_until(lambda: sum(len(each.failed) for each in producers) > FAILED, "failures", 120)
        finally:
            stop.set()
        for each in running:
            each.result()
    wait_until(
        lambda: proxy.metric("quota_proxy_connections", listener="clients") == 0, "no more of the producers"
    )
    text = b"".join(read_log(kafka, topic))
    in_log = {int(found) for found in re.findall(rb"(\d{8})\.{20}", text)}
    failed = set().union(*(each.failed for each in producers))
    stored = set().union(*(each.stored for each in producers))
    assert proxy.metric("quota_proxy_rejected_bytes_total", broker="1", topic=topic) > 0
    assert stored
    assert stored <= in_log
    assert not failed & in_log, f"{len(failed & in_log)} of {len(failed)} reported as failed are in the log"
