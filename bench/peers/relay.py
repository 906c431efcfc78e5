"""A plain relay under uvloop: what no proxy in Python can beat, for it looks at nothing.

`python -m bench.peers.relay PORT BROKER_PORT`
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Final, cast

import uvloop

from bench.peers.peer import HOST, Running, Setting, free_ports, launch

HIGH_WATER: Final = 1 << 20


class Side(asyncio.Protocol):
    """One of the two sockets of a connection: what comes in goes to `forward`, the other side's write."""

    transport: asyncio.Transport
    other: "Side | None" = None
    forward: Callable[[bytes], None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Stands ready to send."""
        # uvloop's transports do not descend from asyncio's.
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(HIGH_WATER)

    def data_received(self, data: bytes) -> None:
        """Passes the bytes on as they are."""
        self.forward(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the other side too."""
        if self.other is not None:
            self.other.transport.close()

    def pause_writing(self) -> None:
        """This side is full: the other one stops reading."""
        if self.other is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """This side has room again."""
        if self.other is not None:
            self.other.transport.resume_reading()


class BrokerSide(Side):
    """The socket towards the broker, of a client that waits for it."""

    def __init__(self, client: "ClientSide") -> None:
        self.other = client
        self.forward = client.transport.write

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Tells the client's side."""
        super().connection_made(transport)
        assert isinstance(self.other, ClientSide)
        self.other.broker_connected(self)


class ClientSide(Side):
    """The accepted socket; what comes before the broker's side is connected is held."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._early: list[bytes] = []
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connects to the broker."""
        super().connection_made(transport)
        self.forward = self._hold
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    def broker_connected(self, broker: BrokerSide) -> None:
        """From now on bytes flow."""
        self.other = broker
        if self.transport.is_closing():
            broker.transport.close()
            return
        broker.transport.writelines(self._early)
        self._early.clear()
        self.forward = broker.transport.write
        self.transport.resume_reading()

    def _hold(self, data: bytes) -> None:
        # Not in connection_made: uvloop begins to read after it, paused or not.
        self._early.append(data)
        self.transport.pause_reading()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: BrokerSide(self), HOST, self._broker_port)
        except OSError:
            self.transport.close()


class Relay:
    """This module, as a process."""

    name = "relay"

    def start(self, setting: Setting) -> Running:
        """Serves a free port."""
        (port,) = free_ports(1)
        command = [sys.executable, "-m", __spec__.name, str(port), str(setting.broker_port)]
        return launch(self.name, command, setting, port)


async def serve(port: int, broker_port: int) -> None:
    """Relays until the process is told to end."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ClientSide(broker_port), HOST, port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
