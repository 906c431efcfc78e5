"""Throughput stays near the quota in every second, not only on average as with Kafka's own quotas."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.rates import check_even, per_second
from tests.support.kafka.tap import ADVERTISED_HOST, Tap
from tests.support.kafka.topics import make_topic, read_log
from tests.support.messages.requests import batches
from tests.support.process.pauses import Pauses
from tests.support.process.proxy_process import HOST, ProxyRunner

pytestmark = [pytest.mark.kafka, pytest.mark.timed]
QUOTA = 1_000_000
SECONDS = 14
STARTING = 3
RECORD = 1000
RECORDS = (SECONDS + 2) * QUOTA // RECORD
QUOTAS = (
    {"entity": {"client-id": "paced-producer"}, "producer_byte_rate": QUOTA},
    {"entity": {"client-id": "paced-consumer"}, "consumer_byte_rate": QUOTA},
)


def test_every_second_is_near_the_quota(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    proxy = run_proxy(kafka.bootstrap, QUOTAS, listener={"advertised_host": ADVERTISED_HOST})
    make_topic(kafka, "paced-in", message_timestamp_type="LogAppendTime")
    make_topic(kafka, "paced-out")
    _produce(kafka, kafka.bootstrap, "paced-out", "unlimited")
    ports = (proxy.bootstrap_port, proxy.broker_port(1))
    with (
        Tap({(ADVERTISED_HOST, port): (HOST, port) for port in ports}) as tap,
        ThreadPoolExecutor() as pool,
        Pauses() as pauses,
    ):
        through_tap = f"{ADVERTISED_HOST}:{proxy.bootstrap_port}"
        producing = pool.submit(_produce, kafka, through_tap, "paced-in", "paced-producer")
        consuming = pool.submit(_consume, kafka, through_tap, "paced-out", "paced-consumer")
        producing.result()
        consuming.result()
    appended = [piece for records in read_log(kafka, "paced-in") for piece in batches(records)]
    _check(appended, pauses, time.time)
    _check(tap.arrivals, pauses, time.monotonic)


def _check(pieces: list[tuple[float, int]], pauses: Pauses, clock: Callable[[], float]) -> None:
    start = STARTING + next(at for at, size in pieces if size > RECORD)
    seconds = SECONDS - STARTING
    check_even(per_second(pieces, start, seconds), QUOTA, pauses.by_second(start, seconds, clock))


def _produce(kafka: EmbeddedKafka, bootstrap: str, topic: str, client_id: str) -> None:
    kafka.run_tool(
        "kafka-producer-perf-test",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(RECORDS)),
        *("--record-size", str(RECORD), "--throughput", "-1", "--command-property", f"client.id={client_id}"),
        timeout=180,
    )


def _consume(kafka: EmbeddedKafka, bootstrap: str, topic: str, client_id: str) -> None:
    kafka.run_tool(
        "kafka-consumer-perf-test",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(RECORDS)),
        *("--timeout", "60000", "--command-property", f"client.id={client_id}"),
        timeout=180,
    )
