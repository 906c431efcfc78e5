"""Byte quotas before a real broker: which clients are throttled, and for how long."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import Confluent, poll_all
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import make_topic
from tests.support.messages.numbered import Got
from tests.support.messages.requests import api_versions, batch, fetch, produce, values
from tests.support.process.pauses import Pauses
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
QUOTA = 1_000_000
KILO = 1000
SLACK = 0.1
"""Seconds by which two clocks' readings of one moment may differ, on a busy machine."""
CLOCK = 0.005
"""Seconds by which a wait may seem too short: the clock of the proxy's event loop has whole milliseconds."""
LATE = 5.0
"""Seconds that a response may be late, apart from pauses of the machine."""
LIMITED = ("producer", "no-acks", "hasty", "shared", "consumer", "big")
RATES = {"producer_byte_rate": QUOTA, "consumer_byte_rate": QUOTA}


@pytest.fixture
def pauses() -> Iterator[Pauses]:
    with Pauses() as pauses:
        yield pauses


@pytest.fixture(scope="module")
def proxy(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    """A proxy that limits each of LIMITED to QUOTA, in both directions."""
    return run_proxy(kafka.bootstrap, [{"entity": {"client-id": name}, **RATES} for name in LIMITED])


def _throttle(response: Any) -> float:
    """Seconds of throttle_time_ms."""
    return float(response.throttle_time.total_seconds())


def test_without_a_quota_nothing_waits(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka, "quota-none")
    records = batch([b"x" * 500 * KILO])
    with RawClient(proxy.broker_port(1), "free") as client:
        responses = [client.ask(produce("quota-none", records)) for _ in range(20)]
        responses += [client.ask(fetch("quota-none", offset)) for offset in range(20)]
    assert [_throttle(response) for response in responses] == [0.0] * 40
    assert proxy.metric("quota_proxy_client_bytes_total", client_id="free", direction="in") > 20 * len(
        records
    )
    assert proxy.metric("quota_proxy_throttled_requests_total", client_id="free") == 0
    assert proxy.metric("quota_proxy_throttle_seconds_total", client_id="free") == 0
    assert all(bucket["entity"] != {"client-id": "free"} for bucket in proxy.buckets())


def test_a_producers_throttle_time_is_true(kafka: EmbeddedKafka, proxy: ProxyProcess, pauses: Pauses) -> None:
    make_topic(kafka, "quota-producer", max_message_bytes=2_000_000)
    started = time.monotonic()
    with RawClient(proxy.broker_port(1), "producer") as client:
        sent = client.send(produce("quota-producer", batch([b"x" * 1600 * KILO])))
        response = client.receive()
        announced = _throttle(response.message)
        # One second's worth is saved up; the rest is owed, less what is earned until the response is here.
        assert 0.6 - (response.at - started) - SLACK < announced < 0.7
        _check_mute(client, sent, response.at, announced, pauses)
    entity = {"quota": "producer_byte_rate", "user": "", "client_id": "producer"}
    assert proxy.metric("quota_proxy_throttled_requests_total", **entity) == 1
    assert 0.5 < proxy.metric("quota_proxy_throttle_seconds_total", **entity) < 0.7
    assert proxy.metric("quota_proxy_quota_limit", **entity) == QUOTA


def test_a_consumers_throttle_time_is_true(kafka: EmbeddedKafka, proxy: ProxyProcess, pauses: Pauses) -> None:
    make_topic(kafka, "quota-consumer")
    with RawClient(kafka.port(1)) as client:
        for _ in range(20):
            client.ask(produce("quota-consumer", batch([b"x" * 100 * KILO])))
    with RawClient(proxy.broker_port(1), "consumer") as client:
        offset = total = 0
        while True:
            sent = client.send(fetch("quota-consumer", offset, max_bytes=50 << 20))
            response = client.receive()
            records = response.message.responses[0].partitions[0].records
            assert records, "a consumer gets at least one batch"
            offset += len(values(records))
            total += len(records)
            if announced := _throttle(response.message):
                break
        assert total > QUOTA / 2, "it had a second's worth saved up"
        # Its max_bytes is lowered, so that no response takes it seconds over.
        assert announced < 0.5
        _check_mute(client, sent, response.at, announced, pauses)


def _check_mute(client: RawClient, sent: float, received: float, announced: float, pauses: Pauses) -> None:
    """The next request, sent at once, gets its response when the wait ends, and not much later."""
    client.send(api_versions())
    next_at = client.receive().at
    assert sent + announced - CLOCK <= next_at <= received + announced + LATE + pauses.seconds


def test_a_client_that_ignores_the_throttle_is_muted(
    kafka: EmbeddedKafka, proxy: ProxyProcess, pauses: Pauses
) -> None:
    make_topic(kafka, "quota-hasty")
    records = batch([b"x" * 250 * KILO])
    started = time.monotonic()
    with RawClient(proxy.broker_port(1), "hasty") as client:
        for _ in range(10):
            client.send(produce("quota-hasty", records))
        client.send(api_versions())
        for _ in range(10):
            client.receive()
        done = client.receive().at - started
    assert 10 * len(records) / QUOTA - 1 <= done + SLACK
    assert done < LATE + 1.5 + pauses.seconds


def test_acks_0_is_muted(kafka: EmbeddedKafka, proxy: ProxyProcess, pauses: Pauses) -> None:
    make_topic(kafka, "quota-no-acks", max_message_bytes=2_000_000)
    started = time.monotonic()
    with RawClient(proxy.broker_port(1), "no-acks") as client:
        client.send(produce("quota-no-acks", batch([b"x" * 1800 * KILO]), acks=0), expects_response=False)
        client.send(api_versions())
        done = client.receive().at - started
    assert 0.8 - CLOCK <= done < 0.8 + LATE + pauses.seconds


def test_connections_of_one_client_id_share_its_quota(
    kafka: EmbeddedKafka, proxy: ProxyProcess, pauses: Pauses
) -> None:
    make_topic(kafka, "quota-shared")
    records = batch([b"x" * 100 * KILO])

    def send(_: int) -> float:
        with RawClient(proxy.broker_port(1), "shared") as client:
            for _ in range(5):
                client.ask(produce("quota-shared", records))
            return time.monotonic()

    started = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        done = max(pool.map(send, range(8))) - started
    # 4 MB, less a second's worth saved up, less what each connection may run into debt.
    assert done + SLACK >= 4 - 1 - 0.8
    assert done < 3 + LATE + pauses.seconds


def test_messages_above_a_seconds_worth_go_through(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka, "quota-big", max_message_bytes=6_000_000)
    client = Confluent(client_id="big", message_max_bytes=6_000_000)
    started = time.monotonic()
    client.send(proxy.bootstrap, "quota-big", 2, size=5_000_000)
    consumer = client.consumer(proxy.bootstrap)
    consumer.subscribe(["quota-big"])
    got: list[Got] = []
    wait_until(lambda: poll_all(consumer, got) == 2, "both messages")
    consumer.close()
    assert [len(message.value) for message in got] == [5_000_000] * 2
    # Each second message has to wait for the first: 5 MB, less the second's worth that was saved up.
    assert time.monotonic() - started > 2 * 4


def test_quotas_of_users_and_of_pairs(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    make_topic(kafka, "quota-users", max_message_bytes=2_000_000)
    proxy = run_proxy(
        kafka.bootstrap,
        [
            {"entity": {"user": "ANONYMOUS"}, "producer_byte_rate": QUOTA},
            {"entity": {"user": "ANONYMOUS", "client-id": "pair"}, "producer_byte_rate": QUOTA},
            {"entity": {"client-id": "one"}, "producer_byte_rate": 1},
        ],
    )
    much, little = (produce("quota-users", batch([b"x" * size * KILO])) for size in (1600, 1))
    waits: dict[str, float] = {}
    # Before the request is sent: the clock of the proxy's event loop has whole milliseconds, rounded down.
    started = time.monotonic()
    passed: dict[str, float] = {}
    for client_id, request in (("one", much), ("pair", little), ("other", little)):
        with RawClient(proxy.broker_port(1), client_id) as client:
            client.send(request)
            response = client.receive()
            waits[client_id] = _throttle(response.message)
            passed[client_id] = response.at - started
    assert 0.6 - passed["one"] - SLACK < waits["one"] < 0.7, "the user's quota comes before the client id's"
    assert waits["pair"] == 0, "a pair has its own"
    # The first request of a new connection waits until the 0.6 s that its user owes are over.
    assert response.at >= started + 0.6 - CLOCK, "clients of a user share its quota"
    assert waits["other"] < 0.1, "what it has waited for is not announced again"
    buckets = [bucket for bucket in proxy.buckets() if bucket["kind"] == "producer_byte_rate"]
    assert [bucket["entity"] for bucket in buckets] == [
        {"user": "ANONYMOUS"},
        {"user": "ANONYMOUS", "client-id": "pair"},
    ]
    # Both waits are for the 0.6 s of the first request, and the second one for 1 KB more.
    assert 0.6 < buckets[0]["throttle_seconds"] < 1.3
    assert buckets[1]["throttle_seconds"] == 0


def test_kafkas_own_algorithm(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """With `window`, ten seconds' worth is forwarded at once, and the next request is throttled for it."""
    make_topic(kafka, "quota-window", max_message_bytes=3_000_000)
    limited = [{"entity": {"client-id": "<default>"}, "producer_byte_rate": QUOTA}]
    proxy = run_proxy(kafka.bootstrap, limited, settings={"quotas": {"algorithm": "window"}})
    little, much = (batch([b"x" * size * KILO]) for size in (990, 2000))
    started = time.monotonic()
    with RawClient(proxy.broker_port(1), "window") as client:
        waits = [_throttle(client.ask(produce("quota-window", little))) for _ in range(10)]
        began = time.monotonic()
        last = _throttle(client.ask(produce("quota-window", much)))
        ended = time.monotonic()
    assert waits == [0.0] * 10
    # (11.9 MB / window - 1 MB/s) / 1 MB/s x window, as SampledRate has it. Its window has 10 to 11 s, or more
    # on a slow machine. The response announces what is left.
    window = max(11.0, ended - started)
    assert 11.9 - window - (ended - began) - SLACK < last < 2
