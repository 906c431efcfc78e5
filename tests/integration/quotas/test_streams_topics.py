"""Internal topics of streams groups on a real Kafka, under a controller mutation quota."""

import time
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import make_topic
from tests.support.messages.requests import find_coordinator, metadata
from tests.support.messages.streams_groups import heartbeat
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
RATE = 20.0
BURST = 11 * RATE
PARTITIONS = 10
GROUPS = 30
SOURCE = "streams-source"
LOW_RATE = 0.1
LOADING = (
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
)
LOW_BURST = 11 * LOW_RATE


@pytest.fixture(scope="module")
def proxy(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    make_topic(kafka, SOURCE, PARTITIONS)
    rates = {"attacker": RATE, "calm": LOW_RATE}
    return run_proxy(
        kafka.bootstrap,
        [{"entity": {"client-id": name}, "controller_mutation_rate": rate} for name, rate in rates.items()],
    )


def _created(kafka: EmbeddedKafka, prefix: str) -> int:
    """How many partitions the broker has of topics that begin so."""
    with RawClient(kafka.port(1)) as client:
        topics = client.ask(metadata()).topics
    return sum(len(topic.partitions) for topic in topics if topic.name.startswith(prefix))


def _join(client: RawClient, group: str) -> Any:
    """Join a new group with one changelog topic; return the response. The broker may have to load the
    group's coordinator first.
    """
    client.ask(find_coordinator(group))

    def joined() -> Any:
        response = client.ask(heartbeat(group, "member", [f"{group}-changelog"], sources=[SOURCE]))
        return response if response.error_code not in LOADING else None

    response = wait_until(joined, "the coordinator")
    assert response.error_code == ErrorCode.none
    return response


def test_new_groups_create_topics_at_the_rate(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    with RawClient(proxy.broker_port(1), "attacker") as client:
        started = time.monotonic()
        for number in range(GROUPS):
            _join(client, f"attack-{number}")
        seconds = time.monotonic() - started
    assert seconds >= (GROUPS * PARTITIONS - BURST - PARTITIONS) / RATE
    wait_until(lambda: _created(kafka, "attack-") == GROUPS * PARTITIONS, "the topics")


def test_a_group_gets_its_topics_and_pays_for_them_once(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    started = time.monotonic()
    with RawClient(proxy.broker_port(1), "calm") as client:
        response = _join(client, "calm")
        wait_until(lambda: _created(kafka, "calm-") == PARTITIONS, "the topic")

        def complete() -> bool:
            beat = client.ask(heartbeat("calm", "member", epoch=response.member_epoch))
            assert beat.error_code == 0
            return not beat.status

        wait_until(complete, "the end of the creation")
        tokens = proxy.metric("quota_proxy_controller_mutation_tokens", client_id="calm")
    paid = LOW_BURST - PARTITIONS
    assert paid <= tokens <= paid + LOW_RATE * (time.monotonic() - started)
