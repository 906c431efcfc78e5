"""Both sides of a connection have what a stream asks for."""

import asyncio

from proxy.server.connection.broker.side import BrokerSide
from proxy.server.connection.connection import Connection
from proxy.server.connection.streams.side import StreamedSide


async def test_nothing_is_forwardable_on_a_connection_that_is_not_open() -> None:
    class Host:
        def opened(self, connection: Connection, address: str) -> None:
            return None

    loop = asyncio.get_running_loop()
    connection = Connection(Host(), 1, loop)  # type: ignore[arg-type]
    for side in (connection, BrokerSide(connection, loop)):
        assert isinstance(side, StreamedSide)
        assert side.forwardable() == 0
        assert not side.active()
