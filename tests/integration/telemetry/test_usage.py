"""Usage events of real clients add up to the counters of /metrics."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kio.schema.incremental_alter_configs.v1 import request as alter
from kio.static.primitive import i8

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import Confluent
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import make_topic
from tests.support.kafka.usage_topic import events_of
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
TENANTS = ("usage-billing", "usage-reports", "usage-limited")
MESSAGES = 2000
PLACE = (
    "cluster",
    "proxy",
    "broker",
    "listener",
    "interval_start_ms",
    "user",
    "client_id",
    "api",
    "topic",
    "partition",
)
"""What tells an event from any other."""


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]


def added_up(events: list[dict[str, Any]], value: str, *labels: str) -> dict[tuple[str, ...], float]:
    sums: Counter[tuple[str, ...]] = Counter()
    for event in events:
        sums[tuple(str(event[label]) for label in labels)] += event[value]
    return {key: value for key, value in sums.items() if value}


def samples(proxy: ProxyProcess, name: str, *labels: str, **wanted: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels[label] for label in labels): sample.value
        for family in proxy.metrics().values()
        for sample in family.samples
        if sample.name == name and wanted.items() <= sample.labels.items() and sample.value
    }


def work(proxy: ProxyProcess, topic: str, tenant: str) -> None:
    client = Confluent(client_id=tenant)
    client.send(proxy.bootstrap, topic, MESSAGES, size=500)
    assert len(client.read(proxy.bootstrap, topic, MESSAGES)) >= MESSAGES


def test_events_add_up_to_the_counters(kafka: EmbeddedKafka, run_proxy: ProxyRunner, tmp_path: Path) -> None:
    make_topic(kafka, "usage-add-up", 3)
    used = {"interval_seconds": 1, "kafka": {"topic": "usage-events"}}
    files = {"folder": str(tmp_path / "events"), "max_bytes": 8192, "keep": 1000}
    # So low that the client exceeds it, also on a busy machine.
    quota = {"entity": {"client-id": "usage-limited"}, "producer_byte_rate": 200_000}
    proxy = run_proxy(
        kafka.bootstrap,
        [quota],
        settings={"usage": {**used, "files": files}, "metrics": {"topic_partitions": True}},
    )
    with ThreadPoolExecutor(len(TENANTS)) as pool:
        list(pool.map(lambda tenant: work(proxy, "usage-add-up", tenant), TENANTS))
    wait_until(lambda: proxy.metric("quota_proxy_connections") == 0, "the clients' end")
    client_bytes = samples(proxy, "quota_proxy_client_bytes_total", "direction", "user", "client_id")
    partition_bytes = samples(
        proxy, "quota_proxy_topic_partition_bytes_total", "direction", "topic", "partition"
    )
    requests = samples(proxy, "quota_proxy_requests_total", "api")
    throttled = samples(proxy, "quota_proxy_throttled_requests_total", "quota")
    seconds = samples(proxy, "quota_proxy_throttle_seconds_total", "quota")
    delivered = {"outcome": "delivered"}
    wait_until(lambda: proxy.metric("quota_proxy_usage_events_total", **delivered) > 0, "a delivery")
    assert proxy.stop() == 0
    events = events_of(kafka, "usage-events")
    assert len({tuple(event[part] for part in PLACE) for event in events}) == len(events)
    for direction in ("in", "out"):
        size = f"bytes_{direction}"
        assert added_up(events, size, "user", "client_id") == {
            (user, client_id): count
            for (way, user, client_id), count in client_bytes.items()
            if way == direction
        }
        assert added_up([event for event in events if event["topic"]], size, "topic", "partition") == {
            (topic, partition): count
            for (way, topic, partition), count in partition_bytes.items()
            if way == direction
        }
    assert added_up(events, "requests", "api") == requests
    limited = [event for event in events if event["quota"]]
    assert {event["client_id"] for event in limited} == {"usage-limited"}
    assert added_up(limited, "throttled_requests", "quota") == throttled
    waited = added_up(limited, "throttle_ms", "quota")
    assert waited.keys() == seconds.keys() == {("producer_byte_rate",)}
    for key, value in waited.items():
        assert value / 1000 == pytest.approx(seconds[key], abs=0.0005 * len(limited))
    assert len({event["interval_start_ms"] for event in events}) > 1
    assert all(event["interval_start_ms"] % 1000 == 0 for event in events)
    # Both sinks have had the same, and the files are several.
    assert sorted(map(str, lines_of(tmp_path / "events"))) == sorted(map(str, events))
    assert len(list((tmp_path / "events").iterdir())) > 1


def set_max_message_bytes(kafka: EmbeddedKafka, topic: str, size: int) -> None:
    config = alter.AlterableConfig(name="max.message.bytes", config_operation=i8(0), value=str(size))
    resource = alter.AlterConfigsResource(resource_type=i8(2), resource_name=topic, configs=(config,))
    with RawClient(kafka.port(1)) as client:
        client.ask(alter.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))


def test_events_wait_for_a_topic_that_takes_none(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    make_topic(kafka, "usage-away", 1)
    make_topic(kafka, "usage-late", 1, max_message_bytes=80)
    proxy = run_proxy(
        kafka.bootstrap, settings={"usage": {"interval_seconds": 1, "kafka": {"topic": "usage-late"}}}
    )
    Confluent(client_id="usage-early").send(proxy.bootstrap, "usage-away", 10)
    wait_until(
        lambda: (
            proxy.metric("quota_proxy_usage_events_waiting", sink="kafka") > 0
            and "cannot write to topic usage-late" in proxy.get("/readyz")[1]
        ),
        "the events' waiting",
    )
    assert proxy.get("/readyz")[0] == 200
    assert proxy.metric("quota_proxy_usage_events_total", outcome="delivered") == 0
    set_max_message_bytes(kafka, "usage-late", 1_000_000)
    wait_until(
        lambda: (
            proxy.metric("quota_proxy_connections") == 0
            and proxy.metric("quota_proxy_usage_events_waiting", sink="kafka") == 0
        ),
        "the events' delivery",
    )
    sent = proxy.metric("quota_proxy_client_bytes_total", direction="in")
    assert proxy.stop() == 0
    events = events_of(kafka, "usage-late")
    once = {tuple(event[part] for part in PLACE): event["bytes_in"] for event in events}
    assert sum(once.values()) == sent
    assert not proxy.log_lines("dropped")
