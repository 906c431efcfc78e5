"""RelaySession and responses that name brokers for which there are no ports yet."""

import asyncio
from typing import Any, cast

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.relay import Relay
from proxy.relay.settings import RelaySettings
from proxy.server.connection.connection import Connection
from proxy.wire.addresses import Address, Addresses, BrokerAddress
from proxy.wire.api_keys import METADATA
from proxy.wire.edit import i32, string
from tests.support.messages.exchanges import opaque
from tests.support.messages.kio_messages import BROKER_HOST, PROXY_HOST, framed
from tests.support.server.client_transport import ClientTransport


class Host:
    """Learns brokers, and notes errors."""

    def __init__(self) -> None:
        self.learned: list[int] = []
        self.errors: list[RelayError] = []
        self._addresses = Addresses()

    def opened(self, connection: Connection, address: str) -> Relay:
        return Relay(
            QuotaEngine([]),
            self._addresses,
            Traffic(),
            RelaySettings(max_frame_bytes=1 << 20),
            principal="user",
            client_address=address,
        )

    def learn_broker(self, broker: BrokerAddress) -> None:
        self.learned.append(broker.node_id)
        self._addresses.put(broker, Address(PROXY_HOST, 1 + broker.node_id))

    def start_connecting(self, connection: Connection, broker: asyncio.Protocol) -> None:
        pass

    def failed(self, connection: Connection, error: RelayError) -> None:
        self.errors.append(error)

    def ended(self, connection: Connection, reason: str) -> None:
        pass

    def left(self, connection: Connection) -> None:
        pass


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def client() -> ClientTransport:
    return ClientTransport()


@pytest.fixture
async def connection(host: Host, client: ClientTransport) -> Connection:
    made = Connection(cast("Any", host), 1, asyncio.get_running_loop())
    made.connection_made(cast("Any", client))
    return made


def metadata(correlation_id: int, *nodes: tuple[int, int]) -> bytes:
    """A Metadata response v0 with these brokers, by node id and port."""
    brokers = [i32(node_id) + string(BROKER_HOST, False) + i32(port) for node_id, port in nodes]
    return framed(i32(correlation_id) + i32(len(nodes)) + b"".join(brokers) + i32(0))


async def test_many_responses_in_a_row_may_each_name_another_broker(
    connection: Connection, host: Host, client: ClientTransport
) -> None:
    """Each must not take a part of the stack."""
    number = 1000
    for place in range(number):  # The relay reads only a few of many requests that arrive together.
        connection.data_received(opaque(place, METADATA, 0))
    connection.broker_sent(b"".join(metadata(place, (place, 9092)) for place in range(number)))
    assert host.learned == list(range(number))
    assert client.written.count(PROXY_HOST.encode()) == number
    assert host.errors == []


async def test_a_broker_at_two_addresses_ends_the_connection(
    connection: Connection, host: Host, client: ClientTransport
) -> None:
    connection.data_received(opaque(1, METADATA, 0))
    connection.broker_sent(metadata(1, (7, 9092), (7, 9093)))
    [error] = host.errors
    assert (error.reason, client.written) == (BROKER_PROTOCOL_ERROR, b"")
    assert not client.open
