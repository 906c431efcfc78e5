"""Consumers that try to get more than their quota, before a real broker; test_consumers.py has the others."""

import time
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from bench.attacks import frames
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import make_topic
from tests.support.messages.requests import batch, fetch, produce
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner

pytestmark = pytest.mark.kafka
MADE_UP = 300_000
QUOTA = 200_000
BATCH = 50_000
WANTED = 4 * QUOTA
LATE = 20.0
"""Seconds that a busy machine may add."""
CLIENTS = ("hangs-up", "ahead", "many")


@pytest.fixture(scope="module")
def proxy(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    entries = [{"entity": {"client-id": name}, "consumer_byte_rate": QUOTA} for name in CLIENTS]
    topics = {"attacked-omit": {"consumer.byte.rate": QUOTA, "consumer.byte.rate.action": "omit"}}
    settings = {"quotas": {"clients": entries, "topics": topics}}
    return run_proxy(kafka.bootstrap, settings=settings)


def _filled(kafka: EmbeddedKafka, topic: str) -> None:
    make_topic(kafka, topic)
    with RawClient(kafka.port(1)) as client:
        for _ in range(40):
            client.ask(produce(topic, batch([b"x" * BATCH])))


def _size(response: Any) -> int:
    return sum(len(one.records or b"") for topic in response.responses for one in topic.partitions)


def _check(got: int, started: float) -> None:
    """A client gets at most the quota of the time that it took, a second's burst, a second's debt, and what
    is on its way; and it does not wait for much longer than its quota takes.
    """
    seconds = time.monotonic() - started
    assert got <= QUOTA * (seconds + 2.0) + 2 * BATCH
    assert seconds < got / QUOTA * 1.25 + LATE


def _check_hanging_up(proxy: ProxyProcess, topic: str, client_id: str) -> None:
    """A client connects anew for each fetch."""
    got = 0
    started = time.monotonic()
    while got < WANTED:
        with RawClient(proxy.broker_port(1), client_id) as client:
            got += _size(client.ask(fetch(topic, 0, max_bytes=50 << 20)))
    _check(got, started)


def test_who_hangs_up_and_comes_again_gets_the_quota(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    _filled(kafka, "attacked-quota")
    _check_hanging_up(proxy, "attacked-quota", "hangs-up")


def test_a_connection_for_each_fetch_gets_the_limit_of_an_omitted_partition(
    kafka: EmbeddedKafka, proxy: ProxyProcess
) -> None:
    _filled(kafka, "attacked-omit")
    _check_hanging_up(proxy, "attacked-omit", "free")


def test_fetches_sent_ahead_get_the_quota(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    _filled(kafka, "attacked-ahead")
    got = 0
    started = time.monotonic()
    with RawClient(proxy.broker_port(1), "ahead") as client:
        for _ in range(100):
            client.send(fetch("attacked-ahead", 0, max_bytes=50 << 20))
        while got < WANTED:
            got += _size(client.receive().message)
    _check(got, started)


def test_twenty_connections_share_the_quota(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    _filled(kafka, "attacked-many")
    got = 0
    started = time.monotonic()
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(proxy.broker_port(1), "many")) for _ in range(20)]
        while got < WANTED:
            for client in clients:
                client.send(fetch("attacked-many", 0, max_bytes=50 << 20))
            got += sum(_size(client.receive().message) for client in clients)
    _check(got, started)


def test_a_fetch_of_very_many_made_up_partitions_does_not_reach_the_broker(
    kafka: EmbeddedKafka, proxy: ProxyProcess
) -> None:
    """The broker would work on it for up to a second."""
    make_topic(kafka, "attacked-list")
    large = frames.fetch("attacked-list", MADE_UP)
    with RawClient(proxy.broker_port(1)) as client:
        with suppress(ConnectionError):  # the proxy may be faster
            client.send_until_full(large, 0.5)
        assert client.ended()
    with RawClient(proxy.broker_port(1)) as other:
        assert other.ask(fetch("attacked-list", 0)).responses
