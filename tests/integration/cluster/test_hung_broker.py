"""A broker that does not respond: clients that give up do not pile up in the proxy."""

import os
import signal
from contextlib import ExitStack

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import make_topic
from tests.support.messages.kio_messages import request_frame
from tests.support.messages.requests import api_versions, batch, produce
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
CLIENTS = 20
FULL_SECONDS = 0.5
IDLE_SECONDS = 6
"""Longer than all clients take to connect on a busy machine."""


def descriptors(proxy: ProxyProcess) -> int:
    return len(os.listdir(f"/proc/{proxy.process.pid}/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are counted in /proc")
def test_clients_that_have_closed_leave(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """Some wait for a response. Others have sent more than the broker takes, so nothing reads their end."""
    proxy = run_proxy(kafka.bootstrap, settings={"limits": {"idle_seconds": IDLE_SECONDS}})
    make_topic(kafka, "hung-broker")
    large = request_frame(produce("hung-broker", batch([b"x" * 100_000])), 1, "raw")
    before = descriptors(proxy)
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(proxy.broker_port(1))) for _ in range(CLIENTS)]
        # No client is idle for long: what each needs for itself happens for all at the same time.
        for client in clients:
            client.send(api_versions())
        for client in clients:
            client.receive()
        os.kill(kafka.pid(1), signal.SIGSTOP)
        stack.callback(os.kill, kafka.pid(1), signal.SIGCONT)
        for client in clients[:-2]:
            client.send(api_versions())
        for client in clients[-2:]:
            client.send_until_full(large * 200, FULL_SECONDS)
        for client in clients:
            client.close()
        wait_until(lambda: proxy.metric("quota_proxy_connections") == 0, "the end of the connections")
        # The broker's sockets are still open, and the proxy has a few of its own.
        assert descriptors(proxy) < before + CLIENTS + CLIENTS // 2
    wait_until(lambda: descriptors(proxy) < before + CLIENTS // 2, "the descriptors")
