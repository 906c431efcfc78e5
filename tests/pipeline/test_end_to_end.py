"""The whole path: clients under quotas, the proxy, its usage topic, a stream, and tables."""

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from click.testing import Result
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import Confluent
from tests.support.kafka.topics import make_topic
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

# Its clients wait for real quotas: beside other tests they are late, which the replay cannot know.
pytestmark = [pytest.mark.kafka, pytest.mark.timed]
TOPIC = "end-to-end"
USAGE_TOPIC = "end-to-end-usage"
SIZE = 1000
BATCH = 100_000
"""Bytes: a client is some ms late after each wait, so there are few, of a quarter and half a second."""
FREE = "e2e-free"
MESSAGES = {FREE: 4000, "e2e-slow": 2400, "e2e-slower": 1200}
LIMITS = {"e2e-slow": 400_000, "e2e-slower": 200_000}
ROUNDS = 4
ON_TIME = 0.96
"""Of the time that the quota takes: a client that waits for less is late itself."""
REPLAYED: Final = 0.3
"""The part of the measured throttle time that a replay may differ from it. Records count when their response
arrives, and their request when it is sent. On a busy machine, the end of an interval of a second may be
between them; the bytes of an interval are then not those of its requests.
"""
QUOTAS = [
    {"entity": {"client-id": f"{name}-{number}"}, "producer_byte_rate": limit}
    for name, limit in LIMITS.items()
    for number in range(ROUNDS)
]


@pytest.fixture(autouse=True)
def collect_sockets() -> Iterator[None]:
    """Collect those that py4j leaves unclosed: timed tests of other files, which come next, fail for them."""
    yield
    gc.collect()


@pytest.fixture
def run_proxy(tmp_path: Path) -> Iterator[ProxyRunner]:
    with ProxyRunner(tmp_path / "proxy") as runner:
        yield runner


def test_usage_is_what_the_clients_sent(
    kafka: EmbeddedKafka,
    run_proxy: ProxyRunner,
    spark: SparkSession,
    run_job: Callable[..., Result],
    tmp_path: Path,
) -> None:
    make_topic(kafka, TOPIC, 3)
    usage = {"interval_seconds": 1, "kafka": {"topic": USAGE_TOPIC}}
    proxy = run_proxy(kafka.bootstrap, QUOTAS, settings={"usage": usage})
    out = tmp_path / "out"
    ingest = (
        *("ingest", "--stream", "once", "--out", out),
        *("--events", f"kafka://{kafka.bootstrap}/{USAGE_TOPIC}"),
    )

    send(proxy, FREE)
    wait_until(lambda: delivered(proxy) > 0, "usage events in the topic")
    first = run_job(*ingest)
    assert first.exit_code == 0, first.output
    # After the job, which would leave them too little of the machine to send at their limits.
    with ThreadPoolExecutor(len(LIMITS)) as pool:
        on_time = set(pool.map(lambda name: send_on_time(proxy, name), LIMITS))
    wait_until(lambda: proxy.metric("quota_proxy_connections") == 0, "the clients' end")
    counted = {
        sample.labels["client_id"]: sample.value
        for family in proxy.metrics().values()
        for sample in family.samples
        if sample.name == "quota_proxy_client_bytes_total" and sample.labels["direction"] == "in"
    }
    assert proxy.stop() == 0
    second = run_job(*ingest)
    assert second.exit_code == 0, second.output
    events = spark.read.parquet(str(out / "events"))
    found = {
        row.client_id: row
        for row in events.groupBy("client_id")
        .agg(
            F.sum("bytes_in").alias("bytes_in"),
            F.sum(F.when(F.col("topic") == TOPIC, F.col("bytes_in"))).alias("records"),
        )
        .collect()
    }
    assert {FREE, *on_time} <= found.keys()
    for client_id, row in found.items():
        sent = MESSAGES[name_of(client_id)] * SIZE
        assert row.bytes_in == counted[client_id]
        assert sent <= row.records <= sent * 1.1
    check_replay(spark, run_job, proxy.config_file, out, on_time)


def send(proxy: ProxyProcess, client_id: str) -> None:
    client = Confluent(**{"client.id": client_id, "batch.size": BATCH})
    client.send(proxy.bootstrap, TOPIC, MESSAGES[name_of(client_id)], size=SIZE)


def name_of(client_id: str) -> str:
    """The client id without the number of its round."""
    return client_id.rstrip("-0123456789")


def send_on_time(proxy: ProxyProcess, name: str) -> str:
    """Send as a client with a bucket of its own, until one is throttled for the time that its quota takes;
    its client id.

    On a busy machine a client sends late. The events of an interval do not say so, and the replay
    reproduces only clients that send as soon as their throttle time is over.
    """
    takes = MESSAGES[name] * SIZE / LIMITS[name] - 1
    for number in range(ROUNDS):
        client_id = f"{name}-{number}"
        send(proxy, client_id)
        if proxy.metric("quota_proxy_throttle_seconds_total", client_id=client_id) >= ON_TIME * takes:
            return client_id
    raise AssertionError(f"{name} was late {ROUNDS} times")


def delivered(proxy: ProxyProcess) -> float:
    """How many usage events are in the topic."""
    return proxy.metric("quota_proxy_usage_events_total", sink="kafka", outcome="delivered")


def check_replay(
    spark: SparkSession, run_job: Callable[..., Result], quotas: Path, out: Path, on_time: set[str]
) -> None:
    """A replay with the quotas that were in force gives the throttle times that were measured."""
    result = run_job("replay", "--events", out / "events", "--out", out, "--quotas", quotas)
    assert result.exit_code == 0, result.output
    rows = {row.client_id: row for row in spark.read.parquet(str(out / "replay")).collect()}
    assert {name_of(client_id) for client_id in rows} == set(LIMITS)
    for client_id in on_time:
        row = rows[client_id]
        assert row.before_throttle_ms > 4000
        assert row.after_throttle_ms == pytest.approx(row.before_throttle_ms, rel=REPLAYED)
