"""The connection is the one that implements the broker's events."""

import asyncio

from proxy.server.connection.broker.events import BrokerEvents
from proxy.server.connection.connection import Connection


async def test_a_connection_that_is_not_open_has_nobody_for_the_brokers_bytes() -> None:
    class Host:
        def opened(self, connection: Connection, address: str) -> None:
            return None

    connection = Connection(Host(), 1, asyncio.get_running_loop())  # type: ignore[arg-type]
    assert isinstance(connection, BrokerEvents)
    assert not connection.broker_active()
