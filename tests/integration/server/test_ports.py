"""A port that cannot be opened is reported in the log, in a metric and by the exit status."""

import signal
import socket

import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import describe_topic, make_topic
from tests.support.messages.requests import api_versions
from tests.support.process.proxy_process import HOST, STOP_SECONDS, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
METRIC = "quota_proxy_brokers_without_port"


def test_a_brokers_port_is_taken(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    proxy = run_proxy.prepare(kafka.bootstrap)
    port = proxy.broker_port(1)
    with socket.create_server((HOST, port)):
        proxy.start().wait_ready()
        wait_until(lambda: proxy.metric(METRIC, listener="clients") == 1, "the metric")
        lines = proxy.log_lines(" ERROR ")
        assert len(lines) == 1
        assert "broker 1" in lines[0]
        assert f"port {port} on {HOST}" in lines[0]
        # The rest of the proxy works, and no client is sent past it.
        make_topic(kafka, "ports")
        assert describe_topic(proxy.bootstrap_port, "ports").name == "ports"
    wait_until(lambda: proxy.metric(METRIC, listener="clients") == 0, "the port, once it is free")
    assert len(proxy.log_lines(" ERROR ")) == 1
    with RawClient(port) as client:
        client.ask(api_versions())


def test_ports_of_a_service_manager_reject_nobody_while_the_proxy_restarts(
    kafka: EmbeddedKafka, run_proxy: ProxyRunner
) -> None:
    proxy = run_proxy.prepare(kafka.bootstrap)
    proxy.hold_ports()
    with RawClient(proxy.bootstrap_port) as early:
        early.send(api_versions())
        proxy.start().wait_ready()
        assert early.receive().message.error_code == ErrorCode.none
    assert proxy.stop() == 0
    with RawClient(proxy.bootstrap_port) as bootstrap, RawClient(proxy.broker_port(1)) as broker:
        for client in (bootstrap, broker):
            client.send(api_versions())
        for number in (signal.SIGTERM, signal.SIGKILL):
            # A restart in the middle of a restart, and a successor that ends at once.
            proxy.launch()
            proxy.process.send_signal(number)
            assert proxy.process.wait(STOP_SECONDS) in (0, -number)
        proxy.start()
        for client in (bootstrap, broker):
            assert client.receive().message.error_code == ErrorCode.none
    proxy.process.kill()
    proxy.process.wait()
    with RawClient(proxy.broker_port(1)) as broker:
        broker.send(api_versions())
        proxy.start()
        assert broker.receive().message.error_code == ErrorCode.none
    assert not proxy.log_lines(" ERROR |Traceback")


def test_a_node_id_beyond_the_ports(kafka_cluster: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    proxy = run_proxy(kafka_cluster.bootstrap, listener={"broker_port_count": 3})
    assert proxy.metric(METRIC, listener="clients") == 1
    lines = proxy.log_lines("ERROR .*broker 3")
    assert len(lines) == 1
    assert "broker_port_count" in lines[0]


@pytest.mark.parametrize("which", ["bootstrap_port", "admin_port"])
def test_a_port_of_the_proxys_own_is_taken(which: str, kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    proxy = run_proxy.prepare(kafka.bootstrap)
    port = getattr(proxy, which)
    with socket.create_server((HOST, port)):
        proxy.launch()
        assert proxy.process.wait(STOP_SECONDS) != 0
    assert f"port {port} on {HOST} " in proxy.log
    assert "Traceback" not in proxy.log


def test_connections_beyond_the_maximum_are_served_later(
    kafka: EmbeddedKafka, run_proxy: ProxyRunner
) -> None:
    """The admin port is served meanwhile, and says so."""
    proxy = run_proxy(kafka.bootstrap, settings={"limits": {"max_connections": 2}})
    with RawClient(proxy.broker_port(1)) as first, RawClient(proxy.bootstrap_port) as second:
        for client in (first, second):
            client.ask(api_versions())
        with RawClient(proxy.broker_port(1)) as third:
            third.send(api_versions())
            wait_until(lambda: "limits.max_connections" in proxy.get("/readyz")[1], "the warning")
            assert proxy.metric("quota_proxy_connections") == 2
            first.close()
            assert third.receive().message.error_code == ErrorCode.none
    assert len(proxy.log_lines("limits.max_connections")) >= 1
