"""A plain relay under uvloop, which reads nothing of the protocol: the lower bound for a proxy in Python.

`python -m bench.peers.relay PORT BROKER_PORT`
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Final, cast

import uvloop

from bench.peers.peer import HOST, Running, Setting, free_ports, launch

HIGH_WATER: Final = 1 << 20
"""Bytes of a write buffer above which the relay stops reading from the other side."""


class Side(asyncio.Protocol):
    """One of the two sockets of a connection; it passes its input to `forward`, the other side's write."""

    transport: asyncio.Transport
    other: "Side | None" = None
    forward: Callable[[bytes], None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        # uvloop's transports do not descend from asyncio's.
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(HIGH_WATER)

    def data_received(self, data: bytes) -> None:
        """Forward the bytes unchanged."""
        self.forward(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the other side too."""
        if self.other is not None:
            self.other.transport.close()

    def pause_writing(self) -> None:
        """Pause reading on the other side: this side's buffer is full."""
        if self.other is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Resume reading on the other side."""
        if self.other is not None:
            self.other.transport.resume_reading()


class BrokerSide(Side):
    """The broker's side of a connection."""

    def __init__(self, client: "ClientSide") -> None:
        self.other = client
        self.forward = client.transport.write

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Notify the client's side."""
        super().connection_made(transport)
        assert isinstance(self.other, ClientSide)
        self.other.broker_connected(self)


class ClientSide(Side):
    """The client's side; it buffers input until the broker's side is connected."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._early: list[bytes] = []
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect to the broker."""
        super().connection_made(transport)
        self.forward = self._hold
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    def broker_connected(self, broker: BrokerSide) -> None:
        """Start forwarding."""
        self.other = broker
        if self.transport.is_closing():
            broker.transport.close()
            return
        broker.transport.writelines(self._early)
        self._early.clear()
        self.forward = broker.transport.write
        self.transport.resume_reading()

    def _hold(self, data: bytes) -> None:
        # Not in connection_made(): uvloop starts reading after it, even if paused there.
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
        """Relay from a free port to the fake broker."""
        (port,) = free_ports(1)
        command = [sys.executable, "-m", __spec__.name, str(port), str(setting.broker_port)]
        return launch(self.name, command, setting, port)


async def serve(port: int, broker_port: int) -> None:
    """Relay until the process is terminated."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ClientSide(broker_port), HOST, port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
