"""RelaySession measures times with a real clock: in the proxy of some requests, and at brokers."""

import asyncio
from time import monotonic
from typing import cast

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.relay.counters.traffic import Traffic
from proxy.relay.relay import Relay
from proxy.server.connection.connection import Connection
from proxy.server.connection.measured_reads import MEASURED_EVERY
from proxy.wire.api_keys import PRODUCE
from tests.support.messages.exchanges import produce, produced
from tests.support.messages.kio_messages import Ports
from tests.support.quotas.buckets import live_buckets
from tests.support.server.client_transport import ClientTransport
from tests.support.stories.playbook import EVERYONE, drive, engine

ROUNDS = 4


class Host:
    """Takes connections; brokers are connected by the test."""

    def __init__(self, traffic: Traffic, limits: QuotaEngine | None = None) -> None:
        self._traffic = traffic
        self._limits = limits or engine({})

    def opened(self, connection: Connection, address: str) -> Relay:
        return drive(self._limits, Ports(), self._traffic).relay

    def start_connecting(self, connection: Connection, broker: asyncio.Protocol) -> None:
        broker.connection_made(cast("asyncio.BaseTransport", ClientTransport()))


def test_one_in_measured_every_requests_is_measured(loop: asyncio.AbstractEventLoop) -> None:
    traffic = Traffic()
    connection = Connection(Host(traffic), 1, loop)  # type: ignore[arg-type]
    connection.connection_made(cast("asyncio.BaseTransport", ClientTransport()))
    for number in range(MEASURED_EVERY * ROUNDS):
        connection.data_received(produce(number))
        connection.broker_sent(produced(number))
    [(api_key, histogram)] = traffic.proxy_times.used()
    assert (api_key, histogram.cumulative[-1]) == (PRODUCE, ROUNDS)
    assert histogram.total_seconds > 0


@pytest.mark.parametrize("limited", [True, False])
def test_a_request_that_takes_less_than_a_step_of_the_loops_clock_costs_request_time(
    limited: bool, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = monotonic()
    monkeypatch.setattr(loop, "time", lambda: now)
    limits = engine({EVERYONE: {"request_percentage": 1e6}} if limited else {})
    traffic = Traffic()
    connection = Connection(Host(traffic, limits), 1, loop)  # type: ignore[arg-type]
    connection.connection_made(cast("asyncio.BaseTransport", ClientTransport()))
    for number in range(100):
        now = monotonic()
        connection.data_received(produce(number))
        connection.broker_sent(produced(number))
    [(_, at_broker)] = traffic.broker_times.used()
    assert at_broker.cumulative[-1] == 100
    assert (at_broker.total_seconds > 0.0) == limited
    assert [bucket.used / 100.0 for bucket in live_buckets(limits)] == pytest.approx(
        [at_broker.total_seconds] if limited else []
    )
