"""RelaySession measures the time in the proxy of some requests, with a real clock."""

import asyncio
from typing import cast

from proxy.relay.counters.traffic import Traffic
from proxy.relay.relay import Relay
from proxy.server.connection.connection import Connection
from proxy.server.connection.measured_reads import MEASURED_EVERY
from proxy.wire.api_keys import PRODUCE
from tests.support.messages.exchanges import produce, produced
from tests.support.server.client_transport import ClientTransport
from tests.support.stories.playbook import new_relay

ROUNDS = 4


class Host:
    """Takes connections; brokers are connected by the test."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic

    def opened(self, connection: Connection, address: str) -> Relay:
        return new_relay(None, self._traffic).relay

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
