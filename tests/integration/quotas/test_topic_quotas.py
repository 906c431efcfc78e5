"""Quotas of topics and of brokers on a real Kafka: limits hold, and no message is lost or duplicated."""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.quota.limits.topic_limits import SHARES_TOPIC
from tests.support.kafka.clients import CLIENTS, Aiokafka, Client, Confluent, KafkaPython
from tests.support.kafka.rates import per_second, uneven
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import drop_topic, make_topic, read_log
from tests.support.messages.numbered import check_all_there, key, value
from tests.support.messages.requests import (
    TOPIC_IDS_FROM,
    batch,
    batches,
    fetch,
    metadata,
    next_offset,
    produce,
)
from tests.support.process.pauses import Pauses
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
RATE: Final = 500_000
COUNT: Final = 300
SIZE: Final = 10_000
SECONDS: Final = 9
TOTAL, SHARE = "total.bytes.in.per.sec.threshold", "bytes.in.per.sec.threshold"
RETRIED_RATE: Final = 200_000
"""So low that any client exceeds it, also on a busy machine."""
RETRIED: Final = 120
"""Messages to a partition with that rate."""
RETRYING: Final[dict[str, Callable[[EmbeddedKafka], Client]]] = {
    **CLIENTS,
    "aiokafka": lambda kafka: Aiokafka(max_batch_size=4 * SIZE),
    "kafka-python": lambda kafka: KafkaPython(batch_size=4 * SIZE),
}
"""With a request for each message, a busy machine would not let them exceed the rate."""


def rejecting_over(rate: int) -> dict[str, int | str]:
    return {"producer.byte.rate": rate, "producer.byte.rate.action": "reject"}


def rejected(proxy: ProxyProcess, topic: str) -> float:
    return proxy.metric("quota_proxy_rejected_bytes_total", broker="1", topic=topic)


@pytest.fixture(scope="module")
def rejecting(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    """A proxy that rejects traffic over the rate of a partition, in topics named after the clients."""
    topics = {f"rejected-{name}": rejecting_over(RETRIED_RATE) for name in CLIENTS}
    topics["rejected-hot"] = rejecting_over(RATE)
    quotas = {"store": "none", "topics": topics}
    settings = {"quotas": quotas, "metrics": {"topic_partitions": True}}
    return run_proxy(kafka.bootstrap, settings=settings)


def test_every_client_retries_rejected_batches(kafka: EmbeddedKafka, rejecting: ProxyProcess) -> None:
    """Each sends 1.2 MB at 200 kB/s, of which one second's worth is accepted at once."""

    def send(name: str) -> float:
        make_topic(kafka, f"rejected-{name}")
        started = time.monotonic()
        RETRYING[name](kafka).send(rejecting.bootstrap, f"rejected-{name}", RETRIED, size=SIZE)
        return time.monotonic() - started

    with ThreadPoolExecutor() as pool:
        took = dict(zip(CLIENTS, pool.map(send, CLIENTS), strict=True))
    for name in CLIENTS:
        assert rejected(rejecting, f"rejected-{name}") > 0, name
        assert took[name] > (RETRIED * SIZE / RETRIED_RATE - 1) * 0.8, took
        check_all_there(Confluent().read(kafka.bootstrap, f"rejected-{name}", RETRIED), RETRIED)


def test_consumers_over_a_partitions_rate_are_throttled(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """Two consumers of one partition share its rate."""
    topic_id = make_topic(kafka, "consumed")
    Confluent(linger_ms=5, batch_size=40_000).send(kafka.bootstrap, "consumed", COUNT, size=SIZE)
    quotas = {"store": "none", "topics": {"<default>": {"consumer.byte.rate": 2 * RATE}}}
    proxy = run_proxy(kafka.bootstrap, settings={"quotas": quotas})
    started = time.monotonic()
    with ThreadPoolExecutor() as pool:
        reads = [pool.submit(Confluent().read, proxy.bootstrap, "consumed", COUNT) for _ in range(2)]
        for each in reads:
            check_all_there(each.result(), COUNT)
    took = time.monotonic() - started
    wanted = (COUNT * SIZE - RATE) / RATE
    assert wanted * 0.9 < took < wanted * 1.2 + 6.0
    (bucket,) = [bucket for bucket in proxy.buckets() if bucket["kind"] == "consumer.byte.rate"]
    assert bucket["entity"] == {"topic": "consumed", "partition": 0}
    assert bucket["throttle_seconds"] > wanted / 2
    assert longest_wait(proxy, topic_id) > timedelta(0)


def longest_wait(proxy: ProxyProcess, topic_id: UUID) -> timedelta:
    """The longest throttle time of a consumer's first fetches, which name the topic by its id."""
    offset = 0
    waits: list[timedelta] = []
    with RawClient(proxy.broker_port(1)) as client:
        for _ in range(3):
            response = client.ask(fetch("", offset, TOPIC_IDS_FROM, topic_id=topic_id))
            if response.responses:  # of a fetch that waits too long, there are none
                offset = next_offset(response.responses[0].partitions[0].records)
            waits.append(response.throttle_time)
    return max(waits)


class SixPartitions:
    """A producer that exceeds the quota of one partition, and not those of five others."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Confluent().producer(bootstrap, batch_size=40_000, linger_ms=5)
        self._topic = topic
        self._hot_waiting = 0
        self.waits: list[float] = []
        """How long messages of the other partitions took."""

    def run(self, seconds: float) -> None:
        # The producer gets its id first, for which a new broker needs a second.
        self._producer.produce(self._topic, bytes(1000), partition=1)
        assert self._producer.flush(60) == 0
        start = time.monotonic()
        sent = 0
        while (now := time.monotonic() - start) < seconds:
            while self._hot_waiting < 200:
                self._hot_waiting += 1
                self._producer.produce(self._topic, bytes(2000), partition=0, on_delivery=self._hot_delivered)
            while sent < now * 50:
                sent += 1
                self._produce_cold(1 + sent % 5)
            self._producer.poll(0.005)
        assert self._producer.flush(60) == 0

    def _produce_cold(self, partition: int) -> None:
        at = time.monotonic()

        def delivered(error: Any, _: Any) -> None:
            assert error is None, error
            self.waits.append(time.monotonic() - at)

        self._producer.produce(self._topic, bytes(1000), partition=partition, on_delivery=delivered)

    def _hot_delivered(self, error: Any, _: Any) -> None:
        assert error is None, error
        self._hot_waiting -= 1


@pytest.mark.timed
def test_a_hot_partition_stays_at_its_limit_and_the_others_flow(
    kafka: EmbeddedKafka, rejecting: ProxyProcess
) -> None:
    make_topic(kafka, "rejected-hot", partitions=6, message_timestamp_type="LogAppendTime")
    producer = SixPartitions(rejecting.bootstrap, "rejected-hot")
    with Pauses() as pauses:
        producer.run(SECONDS + 2)
    appended = [piece for records in read_log(kafka, "rejected-hot") for piece in batches(records)]
    start, seconds = appended[0][0] + 1, SECONDS - 1
    rates = per_second(appended, start, seconds)
    paused = sum(pauses.by_second(start, seconds, time.time))
    mean = sum(rates) / len(rates)
    variation = (sum((rate - mean) ** 2 for rate in rates) / len(rates)) ** 0.5 / mean
    assert abs(mean / RATE - 1) < 0.05 + paused / len(rates), rates
    assert variation < 0.2 + uneven(paused, len(rates)), rates
    waits = sorted(producer.waits)
    assert waits[len(waits) // 2] < 0.1, "half of the others' messages took longer"
    assert waits[len(waits) * 99 // 100] < 1.0 + pauses.seconds, waits[-20:]
    shown = {
        bucket["entity"]["partition"]: bucket["limit"]
        for bucket in rejecting.buckets()
        if bucket["entity"].get("topic") == "rejected-hot"
    }
    assert shown == dict.fromkeys(range(6), RATE)
    family = rejecting.metrics()["quota_proxy_topic_partition_throttle_seconds"]
    assert {
        sample.labels["partition"] for sample in family.samples if sample.labels["topic"] == "rejected-hot"
    }


class Steady:
    """A producer of numbered messages of 1000 bytes at a rate, which records failures."""

    def __init__(self, bootstrap: str, topic: str, rate: int) -> None:
        self._producer = Confluent().producer(bootstrap, linger_ms=20)
        self._topic = topic
        self._rate = rate
        self.sent = 0
        self.failed: list[Any] = []

    def run(self, stop: threading.Event) -> None:
        start = time.monotonic()
        while not stop.is_set():
            while self.sent < (time.monotonic() - start) * self._rate / 1000:
                self._producer.produce(
                    self._topic, value(self.sent, 1000), key(self.sent), on_delivery=self._delivered
                )
                self.sent += 1
            self._producer.poll(0.02)
        assert self._producer.flush(60) == 0

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self.failed.append(error)


def with_topics(proxy: ProxyProcess, quotas: dict[str, Any]) -> None:
    """Write these quotas.* keys to the proxy's file."""
    config = json.loads(proxy.config_file.read_text())
    config["quotas"] = {**config["quotas"], **quotas}
    proxy.write_config(config)


def shares(proxy: ProxyProcess) -> dict[str, float]:
    return {
        bucket["entity"]["topic"]: bucket["limit"] for bucket in proxy.buckets() if bucket["kind"] == SHARE
    }


def test_a_broker_over_its_total_rejects_the_topics_that_are_over_their_share(
    kafka: EmbeddedKafka, run_proxy: ProxyRunner
) -> None:
    names = ("v1-explicit", "v1-hot", "v1-small")
    for name in (*names, "v1-acks0"):
        make_topic(kafka, name)
    quotas: dict[str, Any] = {
        "store": "none",
        "topics": {
            "v1-explicit": {SHARE: 70_000},
            "v1-hot": {SHARE: 20_000},
            "v1-small": {SHARE: 50_000},
            "v1-acks0": {SHARE: 1},
        },
        "brokers": {"<default>": {TOTAL: 150_000}},
    }
    proxy = run_proxy(kafka.bootstrap, settings={"quotas": quotas})
    producers = [
        Steady(proxy.bootstrap, name, rate)
        for name, rate in zip(names, (10_000, 250_000, 10_000), strict=True)
    ]
    without_acks = WithoutAcks(proxy, "v1-acks0")
    stop = threading.Event()
    with ThreadPoolExecutor() as pool:
        running = [pool.submit(producer.run, stop) for producer in producers]
        try:
            wait_until(
                lambda: (
                    rejected(proxy, "v1-hot") > 20_000
                    and proxy.metric("quota_proxy_broker_bytes_in_rate", broker="1") > 150_000
                ),
                "rejections over the total",
                60,
            )
            assert proxy.metric("quota_proxy_topic_bytes_in_rate", broker="1", topic="v1-hot") > 20_000
            without_acks.check_is_dropped()
        finally:
            # Without the quota, all that waits flows at once.
            with_topics(proxy, {"brokers": {}})
            wait_until(lambda: not shares(proxy), "the quota's end")
            stop.set()
        for each in running:
            each.result()
    assert rejected(proxy, "v1-explicit") == rejected(proxy, "v1-small") == 0
    (line,) = proxy.log_lines("topic v1-hot: .*rejected")[:1]
    assert "threshold 20000 B/s; whole broker:" in line
    for name, producer in zip(names, producers, strict=True):
        assert producer.failed == []
        check_all_there(Confluent().read(kafka.bootstrap, name, producer.sent), producer.sent)


class WithoutAcks:
    """A producer with acks=0, which gets no response: rejected batches are counted, and its connection is
    closed.
    """

    def __init__(self, proxy: ProxyProcess, topic: str) -> None:
        self._proxy = proxy
        self._topic = topic
        self._client = RawClient(proxy.broker_port(1))
        self._send()

    def _send(self) -> None:
        self._client.send(produce(self._topic, batch([bytes(1000)]), acks=0), expects_response=False)

    def _is_rejected(self) -> bool:
        self._send()
        return rejected(self._proxy, self._topic) > 0

    def check_is_dropped(self) -> None:
        with self._client as client:
            wait_until(self._is_rejected, "a rejection that nobody is told of")
            assert client.ended()
        assert self._proxy.metric("quota_proxy_connections_closed_total", reason="produce_refused") == 1


def test_topics_without_a_threshold_share_what_is_left(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    make_topic(kafka, "share-explicit")
    make_topic(kafka, "__share-like-internal")
    quotas = {
        "store": "none",
        "topics": {"share-explicit": {SHARE: 400_000}},
        "brokers": {1: {TOTAL: 1_000_000}},
    }
    proxy = run_proxy(kafka.bootstrap, settings={"quotas": quotas})

    def wanted() -> dict[str, object]:
        with RawClient(kafka.port(1)) as client:
            topics = [topic.name for topic in client.ask(metadata()).topics if not topic.is_internal]
        without = [name for name in topics if name not in (SHARES_TOPIC, "share-explicit")]
        each = pytest.approx(600_000 / len(without))
        return {**dict.fromkeys(without, each), "share-explicit": 400_000}

    wait_until(lambda: shares(proxy) == wanted(), "the shares of all topics")
    make_topic(kafka, "share-new")
    wait_until(lambda: "share-new" in shares(proxy) and shares(proxy) == wanted(), "the new topic's share")
    drop_topic(kafka, "share-new")
    before = len(wanted())
    wait_until(
        lambda: {name: shares(proxy)[name] for name in wanted()} == wanted() and len(wanted()) == before,
        "the shares without it",
    )
    rejection = (("v1-a", 700_000), ("v1-b", 400_000))
    with_topics(proxy, {"topics": {name: {SHARE: rate} for name, rate in rejection}})
    wait_until(lambda: bool(proxy.log_lines("is 1100000 in all, more than")), "the rejection of the file")
