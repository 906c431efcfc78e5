"""Consumers of six partitions, one over its quota: it is delivered at its limit, the others at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Final

import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import CLIENTS, Confluent
from tests.support.kafka.rates import check_even
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import make_topic
from tests.support.messages.configs import DELETE, SET, TOPIC, incremental_request
from tests.support.messages.numbered import check_all_there, key, value
from tests.support.process.pauses import Pauses
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
QUOTA: Final = 500_000
SECONDS: Final = 14
"""So long that one response more or less, of a quarter of a second's worth, is within the bound of the mean.
"""
SIZE: Final = 1000
PARTITIONS: Final = 6
HOT: Final = 2
HOT_MESSAGES: Final = SECONDS * QUOTA // SIZE
COLD_MESSAGES: Final = 300
"""Of each other partition: less than its quota lets through at once."""
MESSAGES: Final = HOT_MESSAGES + (PARTITIONS - 1) * COLD_MESSAGES
STARTING: Final = 2
"""Seconds in which the rate may be another one."""
SAMPLE_SECONDS: Final = 0.2
RATE: Final = "consumer.byte.rate"
ACTION: Final = "consumer.byte.rate.action"
BYTES_OUT: Final = "quota_proxy_topic_partition_bytes_total"


@pytest.fixture(scope="module")
def omitting(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    topics = {
        f"omitted-{name}": {"consumer.byte.rate": QUOTA, "consumer.byte.rate.action": "omit"}
        for name in [*CLIENTS, "shared"]
    }
    settings = {"quotas": {"topics": topics}, "metrics": {"topic_partitions": True}}
    return run_proxy(kafka.bootstrap, settings=settings)


def _produce(kafka: EmbeddedKafka, topic: str, hot_messages: int = HOT_MESSAGES) -> int:
    """Produce numbered messages, in batches of at most 16 KiB; return how many."""
    make_topic(kafka, topic, PARTITIONS)
    producer = Confluent(batch_size=16 << 10, linger_ms=50).producer(kafka.bootstrap)
    cold = [partition for partition in range(PARTITIONS) if partition != HOT]
    messages = hot_messages + len(cold) * COLD_MESSAGES
    for number in range(messages):
        partition = HOT if number < hot_messages else cold[number % len(cold)]
        producer.produce(topic, value(number, SIZE), key(number), partition)
        producer.poll(0)
    assert producer.flush(60) == 0
    return messages


class Flow:
    """Bytes out of the proxy for each partition of some topics, sampled while a test runs."""

    def __init__(self, proxy: ProxyProcess, topics: list[str]) -> None:
        self._proxy = proxy
        self._stop = threading.Event()
        self.samples: dict[tuple[str, int], list[tuple[float, float]]] = {
            (topic, partition): [] for topic in topics for partition in range(PARTITIONS)
        }
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            asked_at, samples = self._proxy.samples(BYTES_OUT)
            for sample in samples:
                labels = sample.labels
                found = self.samples.get((labels["topic"], int(labels["partition"])))
                if labels["direction"] == "out" and found is not None:
                    found.append((asked_at, sample.value))

    def __enter__(self) -> "Flow":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def done_at(self, topic: str, partition: int) -> float:
        """When the last bytes came."""
        samples = self.samples[topic, partition]
        return next(at for at, total in samples if total == samples[-1][1])

    def began_at(self, topic: str) -> float:
        """When the first bytes came, of any of the topic's partitions."""
        return min(
            next(at for at, total in self.samples[topic, partition] if total > 0)
            for partition in range(PARTITIONS)
        )

    def rates(self, topic: str, partition: int, start: float, seconds: int) -> list[int]:
        """Bytes per second in each of so many seconds from `start`."""
        samples = self.samples[topic, partition]

        def total(at: float) -> float:
            """Interpolate between two samples."""
            for (before, low), (after, high) in pairwise(samples):
                if before <= at <= after:
                    return low + (high - low) * (at - before) / (after - before)
            raise AssertionError(f"no sample around {at}")

        return [int(total(start + n + 1) - total(start + n)) for n in range(seconds)]


@pytest.mark.timed
def test_the_others_flow_at_once_and_the_hot_one_at_its_limit(
    kafka: EmbeddedKafka, omitting: ProxyProcess
) -> None:
    topics = {name: f"omitted-{name}" for name in CLIENTS}
    for topic in topics.values():
        _produce(kafka, topic)
    with (
        Flow(omitting, list(topics.values())) as flow,
        ThreadPoolExecutor(len(topics)) as pool,
        Pauses() as pauses,
    ):
        reading = {
            name: pool.submit(client(kafka).read, omitting.bootstrap, topics[name], MESSAGES)
            for name, client in CLIENTS.items()
        }
        got = {name: each.result() for name, each in reading.items()}
        for topic in topics.values():
            wait_until(lambda topic=topic: len(flow.samples[topic, HOT]) > 0, f"samples of {topic}")
    for name, topic in topics.items():
        check_all_there(got[name], MESSAGES)
        began = flow.began_at(topic)
        others = {
            flow.done_at(topic, partition) - began for partition in range(PARTITIONS) if partition != HOT
        }
        assert max(others) < 2.0 + sum(pauses.by_second(began, 2)), f"{name}: {others}"
        start, seconds = began + STARTING, SECONDS - 4
        check_even(flow.rates(topic, HOT, start, seconds), QUOTA, pauses.by_second(start, seconds))


def test_a_consumer_that_joins_while_a_partition_is_omitted_gets_every_message(
    kafka: EmbeddedKafka, omitting: ProxyProcess
) -> None:
    """Its first fetch names all partitions; omitted ones have no records in the response."""
    topic = "omitted-shared"
    messages = _produce(kafka, topic, 2 * QUOTA // SIZE)
    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        first = pool.submit(Confluent().read, omitting.bootstrap, topic, messages)
        bucket = {"topic": topic, "partition": str(HOT), "direction": "out"}
        wait_until(
            lambda: omitting.metric("quota_proxy_topic_partition_throttle_seconds_total", **bucket) > 0,
            "the partition's being over",
        )
        others = [CLIENTS[name](kafka) for name in CLIENTS if name != "confluent-kafka"]
        reading = [pool.submit(client.read, omitting.bootstrap, topic, messages) for client in others]
        for each in [first, *reading]:
            check_all_there(each.result(), messages)


def test_a_quota_comes_changes_and_goes_while_consumers_read(
    kafka: EmbeddedKafka, omitting: ProxyProcess
) -> None:
    """Open sessions are opened again, and omitted partitions return when the quota is deleted."""
    topic = "omitted-later"
    messages = _produce(kafka, topic, HOT_MESSAGES)
    names = ("java", "kafka-python", "aiokafka")
    out = {"direction": "out", "topic": topic, "partition": str(HOT)}
    with RawClient(omitting.broker_port(1)) as admin, ThreadPoolExecutor(len(names)) as pool:
        _alter(admin, topic, (RATE, SET, str(QUOTA)))
        reading = [
            pool.submit(CLIENTS[name](kafka).read, omitting.bootstrap, topic, messages) for name in names
        ]
        wait_until(lambda: omitting.metric(BYTES_OUT, **out) > 2 * QUOTA, "a flow before the change")
        _alter(admin, topic, (ACTION, SET, "omit"))
        wait_until(lambda: omitting.metric(BYTES_OUT, **out) > 4 * QUOTA, "a flow after the change")
        assert not any(each.done() for each in reading)
        _alter(admin, topic, (RATE, DELETE, None), (ACTION, DELETE, None))
        for each in reading:
            check_all_there(each.result(60), messages)


def _alter(admin: RawClient, topic: str, *changes: tuple[str, int, str | None]) -> None:
    altered = admin.ask(incremental_request([((TOPIC, topic), changes)]))
    assert [response.error_code for response in altered.responses] == [ErrorCode.none]
