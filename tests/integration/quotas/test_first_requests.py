"""The first request of a client in debt on a new connection, before a real broker: it waits for the debt, and
client libraries wait with it.
"""

import time
from contextlib import ExitStack

import pytest

from bench.attacks import frames
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import CLIENT_ID, CLIENTS
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import make_topic
from tests.support.messages.numbered import check_all_there
from tests.support.messages.requests import fetch
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner

pytestmark = pytest.mark.kafka
DEBTOR = "first-debtor"
WINDOW_SECONDS = 3
"""The longest debt."""
TOPICS = 150
"""Unknown topics in one Metadata request, which is no long list. It takes a broker a tenth of a millisecond
to a few: the quotas are so low that the least of these is a debt of seconds.
"""
CONNECTIONS = 40
COUNT = 20


@pytest.fixture(scope="module")
def proxy(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    quotas = [
        {"entity": {"client-id": DEBTOR}, "request_percentage": 0.001},
        {"entity": {"client-id": CLIENT_ID}, "request_percentage": 0.3},
    ]
    window = {"window_num": WINDOW_SECONDS, "window_size_seconds": 1}
    return run_proxy(kafka.bootstrap, quotas, settings={"quotas": window})


def costly(client_id: str) -> bytes:
    return frames.sent_by(frames.metadata(f"first-{number}" for number in range(TOPICS)), client_id)


def test_a_connection_for_each_request_gets_one_whenever_the_debt_of_the_last_is_paid(
    kafka: EmbeddedKafka, proxy: ProxyProcess
) -> None:
    """Without the waits, and at a broker, it gets hundreds in this time."""
    make_topic(kafka, "first-neighbour")
    began = time.monotonic()
    times: list[tuple[float, float]] = []
    with RawClient(proxy.broker_port(1)) as neighbour:
        for _ in range(4):
            with RawClient(proxy.broker_port(1), DEBTOR) as client:
                client.send_bytes(costly(DEBTOR))
                assert neighbour.ask(fetch("first-neighbour", 0)).responses
                neighbour_served = time.monotonic() - began
                assert len(client.receive_frame()) > TOPICS * 10
                times.append((neighbour_served, time.monotonic() - began))
    # Three debts are paid between the first request and the last response, however late this process is.
    assert times[-1][1] > 0.8 * 3 * WINDOW_SECONDS, times


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_library_in_debt_connects_and_then_works(
    name: str, kafka: EmbeddedKafka, proxy: ProxyProcess
) -> None:
    topic = f"first-{name}"
    make_topic(kafka, topic)
    with ExitStack() as stack:
        # Nearly all are in flight before the first one is charged.
        clients = [
            stack.enter_context(RawClient(proxy.broker_port(1), CLIENT_ID)) for _ in range(CONNECTIONS)
        ]
        for client in clients:
            client.send_bytes(costly(CLIENT_ID))
        for client in clients:
            client.receive_frame()
    waited = proxy.metric("quota_proxy_throttle_seconds_total", client_id=CLIENT_ID)
    library = CLIENTS[name](kafka)
    library.send(proxy.bootstrap, topic, COUNT)
    check_all_there(library.read(kafka.bootstrap, topic, COUNT), COUNT)
    waits = proxy.metric("quota_proxy_throttle_seconds_total", client_id=CLIENT_ID) - waited
    assert waits > 1.0, "it has been in debt"
