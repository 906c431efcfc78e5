"""The controller mutation quota (KIP-599) on a real Kafka, with raw requests and every admin client."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.admin_requests import alter, ask, describe
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.tool_server import run_java
from tests.support.kafka.topics import make_topic
from tests.support.messages.mutations import (
    create_partitions,
    create_topics,
    delete_topics,
    old_create_topics,
    old_delete_topics,
    results,
)
from tests.support.messages.requests import metadata
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
THROTTLED = 89
RATE = 2.0
BURST = 11 * RATE
FAST = 50.0
"""Partitions per second of the clients with batches; a second's worth is their burst."""
BATCH = 200
LATE = 20.0
"""Seconds that a busy machine may add."""
TOOL = "kafka-topics"
METRIC = "quota_proxy_controller_mutation_"


def _limit(client_id: str, rate: float) -> dict[str, object]:
    return {"entity": {"client-id": client_id}, "controller_mutation_rate": rate}


@pytest.fixture(scope="module")
def proxy(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    """A proxy in which every client id has a bucket of its own, with RATE and Kafka's burst.

    The rate of TOOL is low, so that no token returns while a tool starts.
    """
    limits = [_limit("<default>", RATE), _limit("rich", 1e6), _limit(TOOL, 0.1)]
    return run_proxy(kafka.bootstrap, limits)


@pytest.fixture(scope="module")
def fast(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    """A proxy with FAST and a burst of one second."""
    quotas = {"controller": {"window_num": 1, "window_size_seconds": 1}}
    return run_proxy(kafka.bootstrap, [_limit("<default>", FAST)], settings={"quotas": quotas})


@pytest.fixture(scope="module", autouse=True)
def _clean(kafka: EmbeddedKafka) -> Iterator[None]:
    """Delete the topics of these tests, mutation-*, at the end."""
    yield
    with RawClient(kafka.port(1)) as client:
        names = [topic.name for topic in client.ask(metadata()).topics]
        client.ask(delete_topics([name for name in names if name.startswith("mutation-")]))


def _seconds(response: Any) -> float:
    return float(response.throttle_time.total_seconds())


def _waits(port: int, request: Any, client_id: str) -> tuple[Any, float]:
    """Send one request; the response, and the wait: what it announces, and what has passed already."""
    # The clock of the proxy's event loop has whole milliseconds.
    started = time.monotonic() - 0.01
    response = ask(port, request, client_id)
    return response, time.monotonic() - started + _seconds(response)


def _codes(response: Any) -> list[int]:
    return [code for _, code in results(response)]


def _two(prefix: str, partitions: int = 30) -> dict[str, int]:
    return {f"mutation-{prefix}-{number}": partitions for number in range(2)}


# Kafka's own numbers: 2 x 30 partitions at 2 per second. The first leaves 22 - 30 tokens: 4 s.


def test_strict_versions_reject_the_second_topic(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    topics = _two("strict")
    one, other = topics
    port = proxy.broker_port(1)
    # Before the request is sent: the clock of the proxy's event loop has whole milliseconds, rounded down.
    started = time.monotonic()
    with RawClient(port, "strict-create") as client:
        sent = client.send(create_topics(topics, 6))
        response = client.receive()
        assert results(response.message) == [(one, 0), (other, THROTTLED)]
        assert response.message.topics[1].error_message is None
        announced = _seconds(response.message)
        assert 4.0 - (response.at - started) - 0.01 < announced <= 4.0
        # The next request, sent at once, is read when the wait is over; what is left over then goes through.
        client.send(create_topics({other: 30}, 6))
        rest = client.receive()
        assert _codes(rest.message) == [0]
        assert sent + announced - 0.01 <= rest.at <= response.at + announced + LATE
    # Brokers may not know the new topics yet; the proxy does.
    deleted, waits = _waits(port, delete_topics([other, one, "mutation-never"], 5), "strict-delete")
    assert results(deleted) == [(other, 0), (one, THROTTLED), ("mutation-never", 3)]
    assert 0.0 < _seconds(deleted) <= 4.0 <= waits
    grown = dict.fromkeys(_two("strict-grow", 1), 31)
    for name in grown:
        make_topic(kafka, name)
    response, waits = _waits(port, create_partitions(grown, 3, validate_only=True), "strict-grow")
    assert results(response) == list(zip(grown, (0, THROTTLED), strict=True))
    assert 0.0 < _seconds(response) <= 4.0 <= waits


def test_permissive_versions_do_both_and_wait(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    topics = _two("permissive")
    port = proxy.broker_port(1)
    for client_id, request in (
        ("permissive-create", create_topics(topics, 5)),
        ("permissive-delete", delete_topics(list(topics), 4)),
    ):
        response, waits = _waits(port, request, client_id)
        assert _codes(response) == [0, 0]
        assert 10.0 < _seconds(response) <= 19.0 <= waits
    entity = {"user": "", "client_id": "permissive-create"}
    assert -38.0 < proxy.metric(METRIC + "tokens", **entity) < 0.0
    assert proxy.metric(METRIC + "rate", **entity) > 0.0
    assert 10.0 < proxy.metric(METRIC + "throttle_seconds_total", **entity) <= 19.0
    labels = {"quota": "controller_mutation_rate", **entity}
    assert proxy.metric("quota_proxy_throttled_requests_total", **labels) == 1
    assert proxy.metric("quota_proxy_quota_limit", **labels) == RATE


def test_versions_that_cannot_be_told_get_the_response_after_the_wait(
    kafka_391: EmbeddedKafka, run_proxy: ProxyRunner
) -> None:
    """CreateTopics v1 and DeleteTopics v0 have no throttle_time_ms, and only Kafka 3 supports them."""
    proxy = run_proxy(
        kafka_391.bootstrap,
        [_limit("<default>", 10.0)],
        settings={"quotas": {"controller": {"window_num": 1}}},
    )
    # Before the request is sent: the clock of the proxy's event loop has whole milliseconds, rounded down.
    started = time.monotonic()
    with RawClient(proxy.broker_port(1), "old") as client:
        client.send_bytes(old_create_topics({"mutation-old": 20}, 1))
        client.receive_frame()
        assert time.monotonic() - started >= 1.0 - 0.01
        client.send_bytes(old_delete_topics(["mutation-old"]))
        frame = client.receive_frame()
    assert frame.endswith(b"mutation-old\0\0")


def test_the_designs_example(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """At 5 per second with a burst of 500, 560 partitions leave -60 tokens: a wait of 12 s."""
    proxy = run_proxy(
        kafka.bootstrap, [_limit("<default>", 5.0)], settings={"quotas": {"controller": {"window_num": 100}}}
    )
    port = proxy.broker_port(1)
    started = time.monotonic()
    response = ask(port, create_topics({"mutation-design": 560}, validate_only=True), "design")
    assert (_codes(response), _seconds(response)) == ([0], 0.0)
    response = ask(port, create_topics({"mutation-design": 1}, validate_only=True), "design")
    passed = time.monotonic() - started
    assert _codes(response) == [THROTTLED]
    assert 12.0 - passed - 0.01 <= _seconds(response) <= 12.0
    assert -60.0 <= proxy.metric(METRIC + "tokens", client_id="design") < 0.0


def test_partial_batches_keep_order_and_names(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    """Topics that the broker rejects cost nothing and do not affect those after them."""
    make_topic(kafka, "mutation-there")
    topics = {"mutation-z": 10, "mutation-there": 30, "mutation-y": 20, "mutation-x": 1}
    response = ask(proxy.broker_port(1), create_topics(topics, validate_only=True), "partial")
    assert results(response) == list(zip(topics, (0, 36, 0, THROTTLED), strict=True))
    by_id = [topic.topic_id for topic in ask(kafka.port(1), metadata(["mutation-there"]), "t").topics]
    response = ask(proxy.broker_port(1), delete_topics(ids=by_id), "partial-id")
    assert [(topic.topic_id, topic.error_code.value) for topic in response.responses] == [(by_id[0], 0)]


def test_every_broker_takes_from_the_same_bucket(
    kafka_cluster: EmbeddedKafka, run_proxy: ProxyRunner
) -> None:
    proxy = run_proxy(kafka_cluster.bootstrap, [_limit("<default>", RATE)])
    # So many that no token returns while a busy machine pauses.
    requests = [create_topics({"mutation-one": 300}, validate_only=True)] * 3
    responses = [
        ask(proxy.broker_port(node), request, "everywhere") for node, request in enumerate(requests, 1)
    ]
    assert [_codes(response) for response in responses] == [[0], [THROTTLED], [THROTTLED]]
    [bucket] = [one for one in proxy.buckets() if one["kind"] == "controller_mutation_rate"]
    assert bucket["entity"] == {"client-id": "everywhere"}
    assert proxy.metric("quota_proxy_throttled_requests_total", client_id="everywhere") == 2


def test_a_change_is_in_force_at_once(proxy: ProxyProcess) -> None:
    with RawClient(proxy.broker_port(1), "changing") as client:
        _set_rate(proxy.broker_port(1), "changing", 1000.0)
        ten = create_topics(_two("changing", 300), validate_only=True)
        assert _codes(client.ask(ten)) == [0, 0]
        _set_rate(proxy.broker_port(1), "changing", 0.1)
        assert _codes(client.ask(ten)) == [0, THROTTLED]
    _set_rate(proxy.broker_port(1), "changing", None)
    # What was used counts under the default, whose bucket it is as well.
    assert _codes(ask(proxy.broker_port(1), ten, "changing")) == [THROTTLED, THROTTLED]


def test_rejection_by_the_brokers_quota_is_forwarded(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    topics = _two("native", 20)
    _set_rate(kafka.port(1), "rich", 1.0)
    try:

        def rejected() -> Any:
            response = ask(proxy.broker_port(1), create_topics(topics, validate_only=True), "rich")
            return response if _codes(response) == [0, THROTTLED] else None

        response = wait_until(rejected, "the broker's own quota")
        assert _seconds(response) > 5.0
        assert proxy.metric(METRIC + "throttle_seconds_total", client_id="rich") == 0.0
    finally:
        _set_rate(kafka.port(1), "rich", None)
        wait_until(lambda: describe(kafka.port(1)) == {}, "the broker to forget its quota")


def _set_rate(port: int, client_id: str, rate: float | None) -> None:
    assert alter(port, {"client-id": client_id}, controller_mutation_rate=rate) == ErrorCode.none


# Everybody's admin clients


def test_java(fast: ProxyProcess) -> None:
    lines = run_java("TopicBatches", fast.bootstrap, "java", "mutation-java-", str(BATCH))
    [failure] = [line.split(" ", 3) for line in lines if line.startswith("FAILURE ")]
    assert failure[1] == "ThrottlingQuotaExceededException"
    assert "quota" in failure[3]
    steps = {
        step: (int(done), int(failed), float(seconds))
        for step, done, failed, seconds in map(str.split, lines[1:])
    }
    done, failed, _ = steps["once"]
    assert done + failed == BATCH
    assert FAST < done < BATCH
    # Nothing is left of the burst: each of the others waits its turn.
    assert steps["create"][:2] == (failed, 0)
    assert (failed - FAST) / FAST - 1 < steps["create"][2] < failed / FAST + LATE
    assert steps["delete"][:2] == (BATCH, 0)
    assert (BATCH - FAST) / FAST - 1 < steps["delete"][2] < BATCH / FAST + LATE


def test_kafka_topics(kafka: EmbeddedKafka, proxy: ProxyProcess, tmp_path: Path) -> None:
    """kafka-topics disables retries."""
    config = tmp_path / "client.properties"
    config.write_text(f"client.id={TOOL}\n")
    to_proxy = ("--bootstrap-server", proxy.bootstrap, "--command-config", str(config))
    create = ("kafka-topics", *to_proxy, "--create", "--partitions", "30", "--topic")
    assert "Created topic" in kafka.run_tool(*create, "mutation-tool-1").stdout
    failed = kafka.run_tool(*create, "mutation-tool-2", check=False)
    assert failed.returncode == 1
    assert "ThrottlingQuotaExceededException" in failed.stdout + failed.stderr


def _confluent(bootstrap: str) -> Callable[[], None]:
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "confluent"})
    names = [f"mutation-confluent-{number}" for number in range(BATCH)]
    topics = [NewTopic(name, 1, 1) for name in names]

    def run() -> None:
        for future in admin.create_topics(topics).values():
            future.result(60.0)
        for future in admin.delete_topics(names, request_timeout=60.0).values():
            future.result(60.0)

    return run


def _aiokafka(bootstrap: str) -> Callable[[], None]:
    names = [f"mutation-aiokafka-{number}" for number in range(BATCH)]

    async def work() -> None:
        admin = AIOKafkaAdminClient(
            bootstrap_servers=bootstrap, client_id="aiokafka", request_timeout_ms=60_000
        )
        await admin.start()
        try:
            created = await admin.create_topics([AioNewTopic(name, 1, 1) for name in names])
            assert [(name, code) for name, code, _ in created.topic_errors] == [(name, 0) for name in names]
            deleted = await admin.delete_topics(names)
            assert sorted(deleted.topic_error_codes) == sorted((name, 0) for name in names)
        finally:
            await admin.close()

    return lambda: asyncio.run(work())


@pytest.mark.parametrize("client", [_confluent, _aiokafka])
def test_batches_of_clients_that_know_no_error_89(
    client: Callable[[str], Callable[[], None]], fast: ProxyProcess
) -> None:
    """They use permissive versions: each batch is done in full, and the next request waits."""
    started = time.monotonic()
    run = client(fast.bootstrap)
    run()
    passed = time.monotonic() - started
    assert passed + 0.1 >= (BATCH - FAST) / FAST
    assert passed < BATCH / FAST + LATE
    tokens = fast.metric(METRIC + "tokens", client_id=client.__name__.strip("_"))
    # Both batches are charged: the bucket was full, and has been refilled since then.
    assert tokens <= FAST * (1 + time.monotonic() - started) - 2 * BATCH


# Others


def test_a_storm_is_throttled_and_other_tenants_are_not(proxy: ProxyProcess) -> None:
    """50 connections of one tenant exceed its quota; another tenant creates topics meanwhile."""
    port = proxy.broker_port(1)
    calm: list[Any] = []

    def storm(number: int) -> int:
        topics = {f"mutation-storm-{number}-{topic}": 30 for topic in range(5)}
        return sum(
            _codes(ask(port, create_topics(topics, validate_only=True), "storm")).count(0) for _ in range(3)
        )

    started = time.monotonic()
    with ThreadPoolExecutor(50) as pool:
        storms = [pool.submit(storm, number) for number in range(50)]
        calm += [ask(port, create_topics({f"mutation-calm-{number}": 1}), "calm") for number in range(10)]
        admitted = sum(one.result(60.0) for one in storms) * 30
    passed = time.monotonic() - started
    assert 30 <= admitted <= BURST + RATE * passed + 30
    assert [_codes(response) for response in calm] == [[0]] * 10
    assert [_seconds(response) for response in calm] == [0.0] * 10
    assert proxy.metric(METRIC + "throttle_seconds_total", client_id="calm") == 0.0
    assert proxy.metric(METRIC + "throttle_seconds_total", client_id="storm") > 0.0
