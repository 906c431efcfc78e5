"""The whole path: clients under quotas, the proxy, its usage topic, a stream, and tables."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import Confluent
from tests.support.kafka.topics import make_topic
from tests.support.process.proxy_process import ProxyRunner
from tests.support.waiting import wait_until

# Its clients wait for real quotas: beside other tests they are late, which the replay cannot know.
pytestmark = [pytest.mark.kafka, pytest.mark.timed]
TOPIC = "end-to-end"
USAGE_TOPIC = "end-to-end-usage"
SIZE = 1000
MESSAGES = {"e2e-free": 4000, "e2e-slow": 2400, "e2e-slower": 1600}
QUOTAS = [
    {"entity": {"client-id": "e2e-slow"}, "producer_byte_rate": 400_000},
    {"entity": {"client-id": "e2e-slower"}, "producer_byte_rate": 200_000},
]


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

    def send(client_id: str) -> None:
        client = Confluent(**{"client.id": client_id, "batch.size": 20_000})
        client.send(proxy.bootstrap, TOPIC, MESSAGES[client_id], size=SIZE)

    with ThreadPoolExecutor(len(MESSAGES)) as pool:
        sending = [pool.submit(send, client_id) for client_id in MESSAGES]
        sending[0].result()
        first = run_job(*ingest)
        assert first.exit_code == 0, first.output
        for each in sending:
            each.result()
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
    for client_id, messages in MESSAGES.items():
        assert found[client_id].bytes_in == counted[client_id]
        assert messages * SIZE <= found[client_id].records <= messages * SIZE * 1.1
    check_replay(spark, run_job, proxy.config_file, out)


def check_replay(spark: SparkSession, run_job: Callable[..., Result], quotas: Path, out: Path) -> None:
    """A replay with the quotas that were in force gives the throttle times that were measured."""
    result = run_job("replay", "--events", out / "events", "--out", out, "--quotas", quotas)
    assert result.exit_code == 0, result.output
    rows = spark.read.parquet(str(out / "replay")).collect()
    assert {row.client_id for row in rows} == {"e2e-slow", "e2e-slower"}
    for row in rows:
        assert row.before_throttle_ms > 4000
        assert row.after_throttle_ms == pytest.approx(row.before_throttle_ms, rel=0.05)
