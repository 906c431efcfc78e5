"""Limits of every kind through two proxies, with real producers and raw clients. Those of a producer and of a
whole topic are over three brokers, too. Replication throttles are in test_shared_replication.py.
"""

import json
import signal
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from threading import Event
from typing import Any, Final

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.admin_requests import shown_of
from tests.support.kafka.flood import producing
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import appended, make_topic, read_log
from tests.support.messages.configs import TOPIC as CONFIG_OF_TOPIC
from tests.support.messages.mutations import create_topics, results
from tests.support.messages.requests import api_versions, batch, fetch, metadata, produce
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
LIMIT: Final = 400_000
SECONDS: Final = 8.0
BURSTS: Final = 1.2
"""Seconds of the limit: one in both processes together, and the requests that put a bucket into debt."""
OF_TOPIC: Final = "topic.producer.byte.rate"
KINDS: Final = ("producer_byte_rate", OF_TOPIC)
TENANT, TOPIC, PARTITION, REJECTED = "scope-tenant", "scope-topic", "scope-partition", "scope-rejected"
PARTITIONS: Final = {TENANT: 3, TOPIC: 3, PARTITION: 1}
CONSUMER, ADMIN, CLIENT = "scope-consumer", "scope-admin", "scope-client"
ADDRESS: Final = "127.0.0.2"
RATES: Final = {"consumer_byte_rate": 100_000, "controller_mutation_rate": 1, "connection_creation_rate": 5}
PERCENT: Final = 2
THRESHOLD: Final = 100_000
LEAST: Final = 0.5
"""Of a limit: what raw clients use of it on a busy machine."""


def _fetch(proxy: ProxyProcess) -> Generator[float]:
    with RawClient(proxy.broker_port(1), CONSUMER) as client:
        while True:
            client.send(fetch(TENANT, max_bytes=10_000))
            yield float(client.receive().size)


def _create(proxy: ProxyProcess) -> Generator[float]:
    with RawClient(proxy.broker_port(1), ADMIN) as client:
        for number in count():
            response = client.ask(create_topics({f"scope-{proxy.admin_port}-{number}": 1}, 6))
            yield float(results(response)[0][1] == 0)


def _connect(proxy: ProxyProcess) -> Generator[float]:
    while True:
        with RawClient(proxy.broker_port(1), source=ADDRESS) as client:
            client.ask(api_versions())
        yield 1.0


def _ask(proxy: ProxyProcess) -> Generator[float]:
    """Use `request_percentage`. A single request at a busy broker may exceed it, so no units are counted."""
    with RawClient(proxy.broker_port(1), CLIENT) as client:
        while True:
            client.ask(metadata())
            yield 0.0


def _exceed(proxy: ProxyProcess) -> Generator[float]:
    """Produce 90 % of THRESHOLD; the units are rejected requests."""
    records = batch([bytes(THRESHOLD // 10)])
    began = time.monotonic()
    with RawClient(proxy.broker_port(1)) as client:
        for sent in count():
            due = began + sent / 9
            wait_until(lambda due=due: time.monotonic() >= due, "the next request")
            response = client.ask(produce(REJECTED, records)).responses[0]
            yield float(response.partition_responses[0].error_code != 0)


USES: Final[dict[str, Callable[[ProxyProcess], Generator[float]]]] = {
    "consumer_byte_rate": _fetch,
    "controller_mutation_rate": _create,
    "connection_creation_rate": _connect,
    "request_percentage": _ask,
    "bytes.in.per.sec.threshold": _exceed,
}
"""The requests of a client, which sends the next one as soon as it may. Each yields the units admitted."""
QUOTAS: Final[dict[str, Any]] = {
    "clients": [
        {"entity": {"client-id": TENANT}, "scope": "cluster", "producer_byte_rate": LIMIT},
        {"entity": {"client-id": CONSUMER}, "consumer_byte_rate": RATES["consumer_byte_rate"]},
        {"entity": {"client-id": ADMIN}, "controller_mutation_rate": RATES["controller_mutation_rate"]},
        {"entity": {"client-id": CLIENT}, "request_percentage": PERCENT},
        {"entity": {"ip": ADDRESS}, "connection_creation_rate": RATES["connection_creation_rate"]},
    ],
    "topics": {
        "<default>": {"bytes.in.per.sec.threshold": 10**12},
        PARTITION: {"producer.byte.rate": LIMIT},
        REJECTED: {"bytes.in.per.sec.threshold": THRESHOLD},
    },
    "brokers": {"1": {"total.bytes.in.per.sec.threshold": THRESHOLD}},
    "controller": {"window_num": 1, "window_size_seconds": 1},
    "store": {"topic": "scope-quotas"},
}


@contextmanager
def used_by_clients(proxies: list[ProxyProcess]) -> Iterator[dict[str, list[tuple[float, float]]]]:
    """Run a client of each kind at each proxy. By kind: when units were admitted, and how many."""
    used: dict[str, list[tuple[float, float]]] = {kind: [] for kind in USES}
    stop = Event()

    def use(kind: str, proxy: ProxyProcess) -> None:
        with closing(USES[kind](proxy)) as admitted:
            for units in admitted:
                used[kind].append((time.time(), units))
                if stop.is_set():
                    return

    with ThreadPoolExecutor(len(USES) * len(proxies)) as pool:
        ends = [pool.submit(use, kind, proxy) for kind in USES for proxy in proxies]
        try:
            yield used
        finally:
            stop.set()
    for end in ends:
        end.result()


def _admitted(used: list[tuple[float, float]], limit: float, until: float) -> tuple[float, float]:
    """The seconds from the first unit until a moment, and what was admitted then, in seconds of the limit."""
    return until - used[0][0], sum(units for at, units in used if at <= until) / limit


def is_used_by_clients(used: dict[str, list[tuple[float, float]]]) -> bool:
    """Whether the clients have used LEAST of each limit. A busy machine may delay them at first."""
    until = time.time()
    for kind, limit in RATES.items():
        seconds, admitted = _admitted(list(used[kind]), limit, until) if used[kind] else (1.0, 0.0)
        if admitted < LEAST * seconds:
            return False
    return True


def check_used(used: dict[str, list[tuple[float, float]]], until: float) -> None:
    """Check that no more was admitted until a moment, from the first unit on."""
    for kind, limit in RATES.items():
        seconds, admitted = _admitted(used[kind], limit, until)
        # A request that finds no debt is admitted, however large it is, at each proxy.
        requests = 2 * max(units for _, units in used[kind]) / limit
        assert admitted <= 1.05 * seconds + BURSTS + requests, (kind, seconds, admitted)


def set_rate(proxy: ProxyProcess, topic: str, rate: int) -> None:
    entry = ConfigEntry(OF_TOPIC, str(rate), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": proxy.bootstrap})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)


def set_at(proxy: ProxyProcess, topic: str) -> bool:
    """Whether the proxy has the topic's limit: the store's topic brings it to another one a moment later."""
    shown = shown_of(proxy.broker_port(1), (CONFIG_OF_TOPIC, topic), OF_TOPIC)
    return shown[OF_TOPIC].value == str(LIMIT)


def is_used(kafka: EmbeddedKafka, topic: str) -> bool:
    """Whether each of the topic's partitions has a record."""
    return all(next(read_log(kafka, topic, partition), b"") for partition in range(PARTITIONS[topic]))


def produced(kafka: EmbeddedKafka, topic: str, until: float) -> tuple[float, float]:
    """The seconds from the topic's first record to its last one before a moment, and what was appended then,
    in seconds of the limit. Each partition has records.
    """
    of_brokers = [appended(kafka, topic, partition) for partition in range(PARTITIONS[topic])]
    assert all(of_brokers), "every broker had a part"
    pieces = sorted(piece for pieces in of_brokers for piece in pieces if piece[0] <= until)
    return pieces[-1][0] - pieces[0][0], sum(size for _, size in pieces) / LIMIT


def is_used_by_producers(kafka: EmbeddedKafka, topic: str) -> bool:
    """Whether producers have used most of the limit for some seconds. A busy machine may delay them."""
    seconds, rate = produced(kafka, topic, time.time())
    return seconds > 0.75 * SECONDS and rate >= 0.8 * seconds


def part(proxy: ProxyProcess, kind: str) -> float:
    """The part of the limit of the only bucket of a kind that the proxy may use."""
    (found,) = [bucket for bucket in proxy.buckets() if bucket["kind"] == kind]
    return float(found["share"] / found["limit"])


def share(proxy: ProxyProcess, kind: str) -> float:
    """The part of the limit that the proxy may use; 0.0 before it has the bucket."""
    buckets = [bucket for bucket in proxy.buckets() if bucket["kind"] == kind]
    if not buckets:
        return 0.0
    (found,) = buckets
    assert (found["broker"], found["scope"], found["limit"]) == (None, "cluster", LIMIT)
    return float(found["share"])


def check_reload_to_scope_broker(proxy: ProxyProcess) -> None:
    """A reload with another scope gives each broker a bucket, with its whole limit at once."""
    config = json.loads(proxy.config_file.read_text())
    del config["quotas"]["clients"][0]["scope"]
    proxy.write_config(config)
    proxy.process.send_signal(signal.SIGHUP)

    def brokers() -> set[object]:
        return {
            bucket["broker"]
            for bucket in proxy.buckets()
            if bucket["kind"] == "producer_byte_rate" and bucket["scope"] == "broker" and bucket["rate"] > 0
        }

    wait_until(lambda: brokers() == {1, 2, 3}, "a bucket in use for each broker")
    shown = [bucket for bucket in proxy.buckets() if bucket["kind"] == "producer_byte_rate"]
    assert {bucket["limit"] for bucket in shown} == {LIMIT}
    assert {bucket["scope"] for bucket in shown} == {"broker"}, "the cluster's bucket is gone"


def test_one_limit_over_brokers_and_proxies(kafka_cluster: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    for topic, partitions in {**PARTITIONS, REJECTED: 1}.items():
        on = [[1], [2], [3]][:partitions]
        make_topic(kafka_cluster, topic, on=on, message_timestamp_type="LogAppendTime")
    settings = {"quotas": QUOTAS, "sharing": {"topic": "scope-shares"}}
    proxies = [run_proxy(kafka_cluster.bootstrap, settings=settings) for _ in range(2)]
    for proxy in proxies:
        wait_until(lambda proxy=proxy: proxy.metric("quota_proxy_instances") == 2, "both proxies")
    set_rate(proxies[0], TOPIC, LIMIT)
    for proxy in proxies:
        wait_until(lambda proxy=proxy: set_at(proxy, TOPIC), "the limit at both proxies")
    with ExitStack() as stack:
        for proxy in proxies:
            for topic, partitions in PARTITIONS.items():
                stack.enter_context(producing(proxy, topic, client_id=topic, partitions=partitions))
        for topic in PARTITIONS:
            wait_until(lambda topic=topic: is_used(kafka_cluster, topic), "a first record")
        used = stack.enter_context(used_by_clients(proxies))
        began = time.time()
        wait_until(lambda: time.time() > began + SECONDS, "the producers to have sent", 60)
        wait_until(lambda: is_used_by_clients(used), "the clients to have used their limits")
        for topic in PARTITIONS:
            wait_until(lambda topic=topic: is_used_by_producers(kafka_cluster, topic), f"{topic} to be used")
        shares = {kind: [share(proxy, kind) for proxy in proxies] for kind in KINDS}
        parts_of_time = [part(proxy, "request_percentage") for proxy in proxies]
        ended = time.time()
        wait_until(
            lambda: any(units for _, units in used["bytes.in.per.sec.threshold"]),
            "a rejection: each proxy admits less than the threshold, and together they exceed it",
        )
        for proxy in proxies:
            check_reload_to_scope_broker(proxy)
    for kind, parts in shares.items():
        assert min(parts) > 0.0, kind
        assert sum(parts) <= 1.2 * LIMIT, kind
    check_used(used, ended)
    assert 0.0 < sum(parts_of_time) <= 1.2
    for topic in PARTITIONS:
        seconds, rate = produced(kafka_cluster, topic, ended)
        assert rate <= 1.05 * seconds + BURSTS, (topic, seconds, rate)
