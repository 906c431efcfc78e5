"""Limits over three brokers and two proxies, with real producers: of a client, and of a whole topic."""

import json
import signal
import time
from contextlib import ExitStack
from typing import Final

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
from tests.support.kafka.topics import appended, make_topic, read_log
from tests.support.messages.configs import TOPIC as CONFIG_OF_TOPIC
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
LIMIT: Final = 400_000
SECONDS: Final = 8.0
BURSTS: Final = 1.2
"""Seconds of the limit: one in both processes together, and the requests that put a bucket into debt."""
OF_TOPIC: Final = "topic.producer.byte.rate"
KINDS: Final = ("producer_byte_rate", OF_TOPIC)
TENANT, TOPIC = "scope-tenant", "scope-topic"


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
    """Whether each broker has got something of the topic."""
    return all(next(read_log(kafka, topic, partition), b"") for partition in range(3))


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
    for topic in (TENANT, TOPIC):
        make_topic(kafka_cluster, topic, on=[[1], [2], [3]], message_timestamp_type="LogAppendTime")
    clients = [{"entity": {"client-id": TENANT}, "scope": "cluster", "producer_byte_rate": LIMIT}]
    settings = {
        "quotas": {"clients": clients, "store": {"topic": "scope-quotas"}},
        "sharing": {"topic": "scope-shares"},
    }
    proxies = [run_proxy(kafka_cluster.bootstrap, settings=settings) for _ in range(2)]
    for proxy in proxies:
        wait_until(lambda proxy=proxy: proxy.metric("quota_proxy_instances") == 2, "both proxies")
    set_rate(proxies[0], TOPIC, LIMIT)
    for proxy in proxies:
        wait_until(lambda proxy=proxy: set_at(proxy, TOPIC), "the limit at both proxies")
    with ExitStack() as stack:
        for proxy in proxies:
            for topic in (TENANT, TOPIC):
                stack.enter_context(producing(proxy, topic, client_id=topic, partitions=3))
        for topic in (TENANT, TOPIC):
            wait_until(lambda topic=topic: is_used(kafka_cluster, topic), "a first record")
        began = time.time()
        wait_until(lambda: time.time() > began + SECONDS, "the producers to have sent", 60)
        shares = {kind: [share(proxy, kind) for proxy in proxies] for kind in KINDS}
        ended = time.time()
        for proxy in proxies:
            check_reload_to_scope_broker(proxy)
    for kind, parts in shares.items():
        assert min(parts) > 0.0, kind
        assert sum(parts) <= 1.2 * LIMIT, kind
    for topic in (TENANT, TOPIC):
        of_brokers = [appended(kafka_cluster, topic, partition) for partition in range(3)]
        assert all(of_brokers), "every broker had a part"
        pieces = sorted(piece for pieces in of_brokers for piece in pieces if piece[0] <= ended)
        seconds = pieces[-1][0] - pieces[0][0]
        rate = sum(size for _, size in pieces) / LIMIT
        assert seconds > 0.75 * SECONDS, topic
        assert 0.8 * seconds <= rate <= 1.05 * seconds + BURSTS, (topic, seconds, rate)
