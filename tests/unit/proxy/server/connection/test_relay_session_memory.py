"""A large request reserves shared memory until the broker's socket has taken it."""

import asyncio

from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE, PRODUCER_BYTE_RATE_ACTION, REJECT
from proxy.quota.limits.resources import Resources
from proxy.relay.budgets.large_frames import LargeFrames
from proxy.relay.frame_buffer import MAX_BUFFERED_FRAME_BYTES
from proxy.relay.relay import Relay
from proxy.server.connection.connection import Connection
from tests.support.messages.exchanges import produce, produced
from tests.support.server.connections import new_connection
from tests.support.stories.playbook import new_relay
from tests.unit.proxy.server.connection.test_connection_ends import Host

REJECTING = Resources({"limited": {PRODUCER_BYTE_RATE.name: "1000", PRODUCER_BYTE_RATE_ACTION.name: REJECT}})
LARGE = produce(1, size=MAX_BUFFERED_FRAME_BYTES + (4 << 20))


class Memory(Host):
    """Connects to a broker that reads nothing before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.frames = LargeFrames()
        self.may_read = asyncio.Event()
        self.may_respond = asyncio.Event()
        self.relays: list[Relay] = []

    def opened(self, connection: Connection, address: str) -> Relay:
        relay = new_relay(resources=REJECTING, large_frames=self.frames).relay
        self.relays.append(relay)
        return relay

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.may_read.wait()
        assert await reader.readexactly(len(LARGE)) == LARGE
        await self.may_respond.wait()
        writer.write(produced(1))
        await reader.read()
        writer.close()


async def reserve_and_give_back(host: Memory) -> None:
    loop = asyncio.get_running_loop()
    broker = await asyncio.start_server(host.respond, "127.0.0.1", 0, limit=1 << 16)
    host.broker_port = broker.sockets[0].getsockname()[1]
    server = await loop.create_server(lambda: new_connection(host, loop), "127.0.0.1", 0)
    async with broker, server, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        writer.write(LARGE)
        while not (host.relays and host.relays[0].status.response_due):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        for _ in range(20):
            assert host.frames.reserved == len(LARGE)
            await asyncio.sleep(0.001)
        host.may_read.set()
        while host.frames.reserved > 0:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        assert host.relays[0].status.response_due, "the memory does not wait for the response"
        assert host.relays[0].output.to_broker == []
        host.may_respond.set()
        assert await reader.readexactly(len(produced(1))) == produced(1)
        assert host.relays[0].output.to_client == [], "an idle connection keeps no bytes"
        writer.close()
        while host.gone == 0:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def test_memory_is_reserved_until_the_broker_has_taken_the_request(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_until_complete(reserve_and_give_back(Memory()))
