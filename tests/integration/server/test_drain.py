"""Shutdown: requests in flight get their responses, new connections are rejected, the exit status is 0."""

import os
import signal
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.load import Load
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import make_topic, read_log
from tests.support.messages.kio_messages import request_frame
from tests.support.messages.requests import api_versions, batch, fetch, produce, values
from tests.support.process.proxy_process import STOP_SECONDS, ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

COUNT = 800
"""Messages of 10 KB: more than fit between the proxy and a broker that reads nothing."""
FULL_SECONDS = 0.5
"""A socket that has taken nothing for so long is full."""
SLOW_SECONDS = 1.5
"""Longer than a drain reads from clients that could go on for ever."""
LONG_DRAIN = 600
"""limits.drain_seconds of a drain that does not end in time if it waits for a client's quota."""
RATES = {"producer_byte_rate": 25_000, "consumer_byte_rate": 25_000}
"""Half of what Load sends."""
pytestmark = pytest.mark.kafka
WAIT = timedelta(seconds=10)
"""How long the broker delays a fetch response; the drain lasts at least that long."""


def _exit_status(proxy: ProxyProcess) -> int:
    return proxy.process.wait(STOP_SECONDS)


def _throttled(proxy: ProxyProcess) -> list[bool]:
    """Whether each bucket has throttled a request."""
    return [bucket["throttled_requests"] > 0 for bucket in proxy.buckets()]


def _drains(proxy: ProxyProcess) -> bool:
    status, text = proxy.get("/readyz")
    return status == 503 and "shutting down" in text


def test_responses_in_flight_are_delivered(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """A slow one does not cut off other clients: they are served, under their quotas, until it is there."""
    rate = 10_000
    proxy = run_proxy(kafka.bootstrap, [{"entity": {"client-id": "slow"}, "producer_byte_rate": rate}])
    for topic in ("drain-responses", "drain-nothing", "drain-quota-holds"):
        make_topic(kafka, topic)
    with RawClient(proxy.broker_port(1)) as waiting, RawClient(proxy.broker_port(1)) as producing:
        waiting.send(replace(fetch("drain-nothing"), max_wait=WAIT))
        producing.send(replace(fetch("drain-nothing"), max_wait=WAIT))
        for _ in range(20):
            producing.send(produce("drain-responses", batch([b"x" * 1000])))
        wait_until(lambda: proxy.metric("quota_proxy_requests_total", api="Fetch") == 2, "both fetches")
        proxy.terminate()
        wait_until(lambda: _drains(proxy), "the drain")
        proxy.terminate()  # A second signal ends nothing: limits.shutdown_delay_seconds is 0.
        with RawClient(proxy.bootstrap_port) as late, RawClient(proxy.broker_port(1), "slow") as slow:
            late.ask(api_versions())
            began = time.monotonic()
            for _ in range(12):
                slow.send(produce("drain-quota-holds", batch([b"x" * 2 * rate])))
            assert producing.receive().message.error_code == ErrorCode.none
            for _ in range(20):
                partition = producing.receive().message.responses[0].partition_responses[0]
                assert partition.error_code == ErrorCode.none
            for client in (waiting, producing, late, slow):
                assert client.ended()
            seconds = time.monotonic() - began
    assert _exit_status(proxy) == 0
    with pytest.raises(ConnectionRefusedError):
        RawClient(proxy.broker_port(1))
    assert sum(len(values(records)) for records in read_log(kafka, "drain-responses")) == 20
    admitted = sum(len(values(records)) for records in read_log(kafka, "drain-quota-holds"))
    # Each is charged two seconds of the quota. One second's worth had been saved up, and the last is a debt.
    assert 1 <= admitted <= (seconds + 1) / 2 + 1


def test_what_waits_for_events_does_not_delay_the_shutdown(
    kafka: EmbeddedKafka, run_proxy: ProxyRunner
) -> None:
    """A fetch gets no response: the broker may hold it for its whole max_wait_ms, a minute here, and a fetch
    changes nothing, so every client repeats it on its next connection (`restarts_under_load`). A broker that
    shuts down closes such connections without a response too.
    """
    proxy = run_proxy(kafka.bootstrap)
    make_topic(kafka, "drain-silence")
    with RawClient(proxy.broker_port(1)) as waiting:
        waiting.send(replace(fetch("drain-silence"), max_wait=timedelta(seconds=60)))
        wait_until(lambda: proxy.metric("quota_proxy_requests_total", api="Fetch") == 1, "the fetch")
        proxy.terminate()
        assert waiting.ended()
    assert _exit_status(proxy) == 0


@pytest.mark.parametrize("slow", [False, True], ids=["", "slow broker"])
def test_acks_0_is_flushed(slow: bool, kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """Requests without responses that a client has sent before the shutdown arrive."""
    proxy = run_proxy(kafka.bootstrap)
    topic = f"drain-acks-0-{slow}"
    make_topic(kafka, topic)
    frame = request_frame(produce(topic, batch([b"x" * 10_000]), acks=0), 1, "raw")
    with RawClient(proxy.broker_port(1)) as client, ExitStack() as stopped:
        client.ask(api_versions())
        if slow:
            os.kill(kafka.pid(1), signal.SIGSTOP)
            stopped.callback(os.kill, kafka.pid(1), signal.SIGCONT)
        left = client.send_until_full(frame * COUNT, FULL_SECONDS)
        begun = len(left) % len(frame)
        proxy.terminate()
        if slow:
            wait_until(lambda: _drains(proxy), "the drain")
            assert not client.ended(SLOW_SECONDS)
            stopped.close()
        client.send_bytes(left[:begun])
        assert client.ended()
    assert _exit_status(proxy) == 0

    def arrived() -> int:
        return sum(len(values(records)) for records in read_log(kafka, topic))

    wait_until(lambda: arrived() == COUNT - len(left) // len(frame), "all messages")


def test_a_successor_serves_the_same_ports(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """With reuse_port, a client can connect at any time, whichever process serves it. The first successor is
    killed at once.
    """
    proxy = run_proxy(kafka.bootstrap, listener={"reuse_port": True})
    ports = {"bootstrap_port": proxy.bootstrap_port, "broker_port_base": proxy.broker_ports[0]}
    successor = run_proxy(kafka.bootstrap, listener={"reuse_port": True, **ports})
    successor.process.kill()
    successor.process.wait(STOP_SECONDS)
    with RawClient(proxy.bootstrap_port) as client:
        client.ask(api_versions())
    successor.start().wait_ready()
    proxy.terminate()
    while proxy.process.poll() is None:
        for port in (proxy.bootstrap_port, proxy.broker_port(1)):
            # A process that ends closes the connections that it has accepted, or has not accepted yet.
            with suppress(EOFError, ConnectionResetError, BrokenPipeError), RawClient(port) as client:
                client.ask(api_versions())
    for port in (proxy.bootstrap_port, proxy.broker_port(1)):
        with RawClient(port) as client:
            client.ask(api_versions())
    assert _exit_status(proxy) == 0
    assert successor.stop() == 0


@pytest.mark.parametrize("throttled", [False, True], ids=["", "throttled, two workers"])
def test_a_proxy_restarts_under_load(throttled: bool, kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """Nothing is lost or doubled. At the end, throttled clients have requests that the proxy has not read,
    and fetches that it has not forwarded: clients send them again when the connection has ended.
    """
    topic = f"drain-load-{throttled}"
    limited = [{"entity": {"client-id": "<default>"}, **RATES}] if throttled else []
    proxy = run_proxy(kafka.bootstrap, limited, settings={"workers": 2 if throttled else 1})
    make_topic(kafka, topic, partitions=3)
    with Load(proxy.bootstrap, topic, 3) as load:
        load.go_on()
        if throttled:
            wait_until(lambda: _throttled(proxy) == [True, True], "both to be throttled")
        assert proxy.stop() == 0
        proxy.start()
        load.go_on()
        load.check()
    assert not proxy.log_lines("Traceback|ERROR")


def test_a_throttled_client_does_not_delay_the_shutdown(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """Its next request is left unread, as docs/operations.md says. To forward it would let each client past
    its quota at every shutdown; to wait for the quota could take as long as the debt. The client has got no
    response, and sends it again (`restarts_under_load`).
    """
    proxy = run_proxy(
        kafka.bootstrap,
        [{"entity": {"client-id": "slow"}, "producer_byte_rate": 1000}],
        settings={"limits": {"drain_seconds": LONG_DRAIN}},
    )
    make_topic(kafka, "drain-quota")
    with RawClient(proxy.broker_port(1), "slow") as client:
        client.ask(produce("drain-quota", batch([b"x" * 100_000])))
        client.send(produce("drain-quota", batch([b"x" * 100_000])))
        proxy.terminate()
        assert client.ended()
    assert _exit_status(proxy) == 0
    assert sum(len(values(records)) for records in read_log(kafka, "drain-quota")) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_end_of_an_idle_proxy(
    number: signal.Signals, kafka: EmbeddedKafka, run_proxy: ProxyRunner
) -> None:
    proxy = run_proxy(kafka.bootstrap)
    with RawClient(proxy.broker_port(1)) as client:
        client.ask(api_versions())
        proxy.process.send_signal(number)
        assert client.ended()
    assert _exit_status(proxy) == 0
    assert not proxy.log_lines("Traceback|ERROR")


def test_the_end_before_the_cluster_is_there(run_proxy: ProxyRunner) -> None:
    proxy = run_proxy.prepare("127.0.0.1:1").start()
    assert proxy.stop() == 0
    assert not proxy.log_lines("Traceback|ERROR")
