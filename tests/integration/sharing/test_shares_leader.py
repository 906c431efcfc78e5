"""Two proxies hold one limit while the broker that leads their topic hangs, or is killed, and comes back."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.flood import producing
from tests.support.kafka.topics import describe_topic, leaders, make_topic, read_log
from tests.support.messages.requests import batches
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
LIMIT: Final = 200_000
"""So low that producers reach it while a broker starts on a busy machine: they queue a second's worth."""
TENANT: Final = "leader-tenant"
SETTLING: Final = 4.0
LATE: Final = 0.5
"""Seconds of the limit: what a broker on a busy machine appends later than the proxy admits it."""


def appended(kafka: EmbeddedKafka, topic: str, began: float, ended: float) -> float:
    """The rate at which the broker appended to the topic in this time, as a part of the limit."""
    pieces = [piece for records in read_log(kafka, topic) for piece in batches(records)]
    return sum(size for at, size in pieces if began <= at < ended) / (ended - began) / LIMIT


def all_proxies(proxies: list[ProxyProcess], holds: Callable[[ProxyProcess], bool], what: str) -> None:
    for proxy in proxies:
        wait_until(lambda proxy=proxy: holds(proxy), what, 60)


def share(proxy: ProxyProcess) -> float:
    """The proxy's part of the limit."""
    return sum(
        float(bucket["share"]) / LIMIT for bucket in proxy.buckets() if bucket["kind"] == "producer_byte_rate"
    )


def half(part: float) -> bool:
    return part == pytest.approx(0.5, abs=0.1)


def degraded(proxy: ProxyProcess) -> bool:
    """Whether /readyz says that the proxy keeps its part, because of the topic."""
    status, text = proxy.get("/readyz")
    warnings = " ".join(json.loads(text)["warnings"])
    assert status == 200, text
    return proxy.metric("quota_proxy_sharing_degraded") == 1 and "keeps its part" in warnings


def shares_again(proxy: ProxyProcess) -> bool:
    return (
        proxy.metric("quota_proxy_sharing_degraded") == 0
        and proxy.metric("quota_proxy_instances") == 2
        and json.loads(proxy.get("/readyz")[1])["warnings"] == []
    )


@contextmanager
def hung(kafka: EmbeddedKafka, node_id: int) -> Iterator[None]:
    """A broker that accepts connections, and does not respond."""
    os.kill(kafka.pid(node_id), signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(kafka.pid(node_id), signal.SIGCONT)


@contextmanager
def killed(kafka: EmbeddedKafka, node_id: int) -> Iterator[None]:
    kafka.kill(node_id)
    try:
        yield
    finally:
        kafka.start(node_id)


def all_notice(proxies: list[ProxyProcess]) -> None:
    """Wait until each proxy has said that sharing is degraded. One may share again before another one has
    noticed.
    """
    noticed: set[ProxyProcess] = set()

    def all_have_noticed() -> bool:
        noticed.update(proxy for proxy in proxies if degraded(proxy))
        return noticed == set(proxies)

    wait_until(all_have_noticed, "degraded sharing")


@pytest.mark.parametrize("replicas", [3, 1])
def test_the_leader_of_the_shares_topic_is_away(
    kafka_cluster: EmbeddedKafka, run_proxy: ProxyRunner, replicas: int
) -> None:
    """With replicas, the proxies share again while the broker is away; without, when it is back."""
    kafka, shares = kafka_cluster, f"shares-leader-{replicas}"
    topics = [f"leader-{replicas}-{name}" for name in "ab"]
    for topic in topics:
        make_topic(kafka, topic, on=[[1]], message_timestamp_type="LogAppendTime")
    # Operators may create all topics of the proxy as the one for quotas.
    policy = "delete" if replicas > 1 else "compact"
    make_topic(
        kafka,
        shares,
        on=[[3, 2, 1][:replicas]],
        message_timestamp_type="LogAppendTime",
        cleanup_policy=policy,
    )
    settings = {"quotas": {"store": "none"}, "sharing": {"topic": shares}}
    quotas = [{"entity": {"client-id": TENANT}, "producer_byte_rate": LIMIT}]
    proxies = [run_proxy(kafka.bootstrap, quotas, settings=settings) for _ in range(2)]
    all_proxies(proxies, shares_again, "both proxies")
    with producing(proxies[0], topics[0], TENANT):
        with producing(proxies[1], topics[1], TENANT):
            settled = time.time() + SETTLING
            wait_until(lambda: time.time() > settled, "a steady flow", 60)
            # They keep these parts while the topic has no leader.
            wait_until(lambda: all(half(share(proxy)) for proxy in proxies), "equal parts", 60)
            began = time.time()
            for fault in (hung, killed) if replicas > 1 else (killed,):
                # Broker 1 leads the producers' topics, so it comes last.
                leader = leaders(kafka, shares)[0]
                with fault(kafka, leader):
                    all_notice(proxies)
                    if replicas > 1:
                        all_proxies(proxies, shares_again, "sharing through another leader")
                        assert leaders(kafka, shares)[0] != leader
                all_proxies(proxies, shares_again, "sharing through a leader")
            shared = time.time()
            wait_until(lambda: all(half(share(proxy)) for proxy in proxies), "equal parts", 60)
        wait_until(lambda: share(proxies[0]) > 0.9, "the whole limit for the proxy that has the demand", 60)
    away = shared - began
    rates = [appended(kafka, topic, began, shared) for topic in topics]
    assert 0.8 <= sum(rates) <= 1.05 + LATE / away, (rates, away)
    assert describe_topic(kafka.port(1), shares).partitions[0].replica_nodes[0] == 3
