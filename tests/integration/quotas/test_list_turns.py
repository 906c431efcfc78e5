"""Long lists of one client, before a real broker: few are there at a time, and all get their responses."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest

from bench.attacks import frames
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import make_topic
from tests.support.messages.requests import batch, fetch, produce
from tests.support.process.proxy_process import ProxyProcess
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
CONNECTIONS = 10
MADE_UP = 5000
"""Partitions in a list of 140 KB."""
PAUSED = "quota_proxy_connections_paused"


@contextmanager
def connected(proxy: ProxyProcess) -> Iterator[list[RawClient]]:
    """Clients that send requests at once: a proxy closes connections that send nothing."""
    with ExitStack() as stack:
        yield [stack.enter_context(RawClient(proxy.broker_port(1))) for _ in range(CONNECTIONS)]


@contextmanager
def suspended(pid: int) -> Iterator[None]:
    """Stop a process meanwhile: a broker keeps the lists that it has, and the others wait for their turn."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_the_lists_of_a_client_wait_for_each_other_and_nothing_else_does(
    kafka: EmbeddedKafka, proxy: ProxyProcess
) -> None:
    make_topic(kafka, "listed")
    large = frames.fetch("listed", MADE_UP)
    with connected(proxy) as clients, RawClient(proxy.broker_port(1)) as neighbour:
        with suspended(kafka.pid(1)):
            for client in clients:
                client.send_bytes(large)
            wait_until(
                lambda: proxy.metric(PAUSED, reason="list_turn") >= CONNECTIONS / 2, "most lists to wait"
            )
        assert neighbour.ask(produce("listed", batch([b"x"]))).responses
        for client in clients:
            assert len(client.receive_frame()) > MADE_UP * 20
    assert proxy.metric(PAUSED, reason="list_turn") == 0


def test_consumers_of_many_partitions_without_records_all_get_their_responses(
    kafka: EmbeddedKafka, proxy: ProxyProcess
) -> None:
    """Each waits at the broker for as long as it likes; a large list waits for none of them."""
    make_topic(kafka, "listed-idle", partitions=300)
    idle = frames.fetch("listed-idle", 300, max_wait_ms=1000)
    assert len(idle) > 8000
    with connected(proxy) as clients:
        for _ in range(2):
            for client in clients:
                client.send_bytes(idle)
            with ThreadPoolExecutor(CONNECTIONS) as threads:
                sizes = list(threads.map(lambda client: len(client.receive_frame()), clients))
            assert min(sizes) > 300 * 20
        clients[0].send(fetch("listed-idle", 0))
        assert clients[0].receive().message.responses
