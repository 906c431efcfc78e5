"""Producers that a quota rejects: what they report as failed is not in the log.

The producers are librdkafka's, without idempotence. Their messages expire while quotas reject them. Those of
a request whose response comes after that are reported as failed, too, whatever the broker has done with it.
"""

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import confluent_kafka
import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.topics import make_topic, read_log
from tests.support.messages.numbered import value
from tests.support.messages.requests import batches
from tests.support.process.proxy_process import ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
LIMIT: Final = 100_000
RATE: Final = 75_000
"""Of each producer."""
SIZE: Final = 1000
EXPIRE_MS: Final = 2800
RETRY_MS: Final = 1500
"""Within 20 %: after half a second of lingering, a batch is sent once or twice, and the second time at least
half a second before it expires. Few responses are too late on any machine.
"""
IN_FLIGHT: Final = (1, 1, 5, 5)
"""Of each producer, the requests that await responses. One whose response is late ends the connection, and
the others get none.
"""
STATISTICS_MS: Final = 200
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

    def __init__(self, bootstrap: str, topic: str, first: int, in_flight: int) -> None:
        config = {"message.timeout.ms": EXPIRE_MS, "linger.ms": 500, "batch.size": 1_000_000}
        connection = {"bootstrap.servers": bootstrap, "client.id": "client", "enable.idempotence": False}
        statistics = {"statistics.interval.ms": STATISTICS_MS, "stats_cb": self._take_statistics}
        retries = {"retry.backoff.ms": RETRY_MS, "retry.backoff.max.ms": RETRY_MS}
        ahead = {"max.in.flight.requests.per.connection": in_flight}
        self._producer = confluent_kafka.Producer({**connection, **config, **statistics, **retries, **ahead})
        self._topic = topic
        self._statistics = 0
        self._in_flight = in_flight
        self._late = 0
        """Requests whose responses have come too late."""
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
        # The first ones may be older than the last report.
        wanted = self._statistics + 2
        wait_until(lambda: self._producer.poll(0.1) >= 0 and self._statistics >= wanted, "the statistics")
        del self._producer

    def _take_statistics(self, text: str) -> None:
        self._late = sum(broker["req_timeouts"] for broker in json.loads(text)["brokers"].values())
        self._statistics += 1

    @property
    def unanswered(self) -> int:
        """The most requests that can have been without a response."""
        return self._in_flight * self._late

    def _send(self, number: int) -> None:
        def reported(error: Any, _: Any) -> None:
            (self.stored if error is None else self.failed).add(number)

        self._producer.produce(self._topic, value(number, SIZE), on_delivery=reported)


def batches_of(kafka: EmbeddedKafka, topic: str) -> list[set[int]]:
    """The numbers of the messages of each batch in the log."""
    found = []
    for records in read_log(kafka, topic):
        at = 0
        for _, size in batches(records):
            batch = records[at : at + size]
            found.append({int(number) for number in re.findall(rb"(\d{8})\.{20}", batch)})
            at += size
    return found


@pytest.mark.parametrize("quota", QUOTAS)
def test_what_expires_while_it_is_rejected_is_not_in_the_log(
    kafka: EmbeddedKafka, run_proxy: ProxyRunner, quota: str
) -> None:
    topic = f"expiring-{quota}"
    make_topic(kafka, topic)
    proxy = run_proxy(kafka.bootstrap, settings={"quotas": {"store": "none", **QUOTAS[quota]}})
    producers = [
        Expiring(proxy.bootstrap, topic, 10_000_000 * number, in_flight)
        for number, in_flight in enumerate(IN_FLIGHT, 1)
    ]
    stop = threading.Event()
    with ThreadPoolExecutor() as pool:
        running = [pool.submit(each.run, RATE, stop) for each in producers]
        try:
            wait_until(lambda: sum(len(each.failed) for each in producers) > FAILED, "failures", 120)
        finally:
            stop.set()
        for run in running:
            run.result()
    wait_until(
        lambda: proxy.metric("quota_proxy_connections", listener="clients") == 0, "no more of the producers"
    )
    in_log = batches_of(kafka, topic)
    stored = set().union(*(each.stored for each in producers))
    assert proxy.metric("quota_proxy_rejected_bytes_total", broker="1", topic=topic) > 0
    assert stored
    assert stored <= set().union(*in_log)
    for each in producers:
        wrong = [batch for batch in in_log if batch & each.failed]
        assert len(wrong) <= each.unanswered, f"batches in the log are reported as failed: {wrong}"
    assert sum(len(each.failed - set().union(*in_log)) for each in producers) > FAILED / 2
