"""Kafka 3.9.1, the last one that supports the oldest versions of Produce and Fetch, with today's clients."""

import time
from collections.abc import Callable

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.wire.apis.registry import WITHOUT_INTERCEPTED
from tests.support.kafka.clients import Aiokafka, Client, Confluent, KafkaPython
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import make_topic, read_log
from tests.support.messages import old_messages
from tests.support.messages.numbered import check_all_there
from tests.support.messages.requests import api_versions, batch, produce, values
from tests.support.process.pauses import Pauses
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner

pytestmark = pytest.mark.kafka
QUOTA = 1_000_000
KILO = 1000
SLACK = 0.05
LATE = 5.0
COUNT = 1000
CLIENTS: dict[str, Callable[[], Client]] = {
    "confluent-kafka": Confluent,
    "aiokafka": Aiokafka,
    "kafka-python": KafkaPython,
}


@pytest.fixture(scope="module")
def proxy(kafka_391: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    """A proxy that limits client ids that begin with `old` to QUOTA, in both directions."""
    names = ("client", *(f"old-{version}" for version in range(3)))
    rates = {"producer_byte_rate": QUOTA, "consumer_byte_rate": QUOTA}
    return run_proxy(kafka_391.bootstrap, [{"entity": {"client-id": name}, **rates} for name in names])


@pytest.mark.parametrize("name", CLIENTS)
def test_clients(name: str, kafka_391: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    make_topic(kafka_391, f"old-{name}", partitions=3)
    proxy = run_proxy(kafka_391.bootstrap)
    client = CLIENTS[name]()
    client.send(proxy.bootstrap, f"old-{name}", COUNT)
    check_all_there(client.read(proxy.bootstrap, f"old-{name}", COUNT), COUNT)


def test_java_tools(kafka_391: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka_391, "old-java", partitions=3)
    sent = kafka_391.run_tool(
        "kafka-producer-perf-test",
        *("--topic", "old-java", "--num-records", str(COUNT), "--record-size", "500", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={proxy.bootstrap}", "client.id=old-java"),
    )
    assert f"{COUNT} records sent" in sent.stdout
    from_topic = ("--bootstrap-server", proxy.bootstrap, "--topic", "old-java", "--messages", str(COUNT))
    read = kafka_391.run_tool("kafka-consumer-perf-test", *from_topic, "--hide-header", "--timeout", "30000")
    assert int(read.stdout.strip().splitlines()[-1].split(",")[4]) >= COUNT
    shown = kafka_391.run_tool("kafka-broker-api-versions", "--bootstrap-server", proxy.bootstrap).stdout
    assert f"127.0.0.1:{proxy.broker_port(1)} (id: 1 " in shown


def test_the_versions_that_are_offered(kafka_391: EmbeddedKafka, proxy: ProxyProcess) -> None:
    responses = []
    for port in (kafka_391.port(1), proxy.bootstrap_port):
        with RawClient(port) as client:
            responses.append(client.ask(api_versions()))
    native, offered = (
        {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        for response in responses
    )
    for key, (oldest, newest) in native.items():
        api = WITHOUT_INTERCEPTED.read[key] if key < len(WITHOUT_INTERCEPTED.read) else None
        assert offered[key] == ((oldest, newest) if api is None else (oldest, min(newest, api.newest)))
    assert responses[1].finalized_features == responses[0].finalized_features


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_produce_requests(version: int, kafka_391: EmbeddedKafka, proxy: ProxyProcess) -> None:
    """v0 has no throttle_time_ms, so its response is delayed; the others announce the wait."""
    topic = f"old-produce-{version}"
    make_topic(kafka_391, topic, max_message_bytes=2_000_000)
    records = batch([b"x" * 1600 * KILO], magic=min(version, 1))
    # Before the request is sent: the clock of the proxy's event loop has whole milliseconds, rounded down.
    started = time.monotonic()
    with Pauses() as pauses, RawClient(proxy.broker_port(1)) as client:
        request = old_messages.produce_request(version, 7, f"old-{version}", -1, {topic: {0: records}})
        client.send_bytes(request)
        response = client.receive_frame()
        elapsed = time.monotonic() - started
        client.send(api_versions())
        muted = client.receive().at - started
    # [name, [index, error_code, base_offset, v2: log_append_time_ms]], v1: throttle_time_ms
    at_error = 4 + 4 + 4 + 2 + len(topic) + 4 + 4
    assert response[at_error : at_error + 2] == b"\0\0"
    if version == 0:
        assert 0.6 - SLACK <= elapsed < 0.6 + LATE + pauses.seconds
    else:
        announced = int.from_bytes(response[-4:], "big") / 1000
        assert 0.6 - elapsed - SLACK <= announced < 0.7
    assert 0.6 - SLACK <= muted < 0.6 + LATE + pauses.seconds
    stored = [value for records in read_log(kafka_391, topic) for value in values(records)]
    assert stored == [b"x" * 1600 * KILO]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_old_fetch_requests(version: int, kafka_391: EmbeddedKafka, proxy: ProxyProcess) -> None:
    """v0 has no throttle_time_ms, so its response is delayed."""
    topic = f"old-fetch-{version}"
    make_topic(kafka_391, topic)
    with RawClient(kafka_391.port(1)) as client:
        for number in range(20):
            client.ask(produce(topic, batch([b"%02d" % number + b"x" * 100 * KILO])))
    got: list[bytes] = []
    waits: list[int] = []
    started = time.monotonic()
    with Pauses() as pauses, RawClient(proxy.broker_port(1)) as client:
        while len(got) < 20:
            limits = {topic: {0: 50 << 20}}
            client.send_bytes(
                old_messages.fetch_request(version, 7, limits, max_bytes=50 << 20, offset=len(got))
            )
            frame = client.receive_frame()
            # v1: throttle_time_ms, [name, [index, error_code, high_watermark, records]]
            at = 8 if version == 0 else 12
            waits.append(int.from_bytes(frame[8:at], "big"))
            got += values(frame[at + 4 + 2 + len(topic) + 4 + 4 + 2 + 8 + 4 :])
        client.send(api_versions())
        passed = client.receive().at - started
    assert [int(value[:2]) for value in got] == list(range(20))
    # 2 MB, less what was saved up.
    assert 1.0 - SLACK <= passed < 2 + LATE + pauses.seconds
    assert any(waits) == (version > 0)
