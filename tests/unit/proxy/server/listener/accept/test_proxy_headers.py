"""ProxyHeaders on real sockets: who is believed, and that the bytes behind a header stay in the socket."""

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncIterator

import pytest

from proxy.config.settings import ProxyProtocol
from proxy.relay.close_reasons import PROXY_HEADER, UNTRUSTED_SENDER
from proxy.server.connection.origin import Origin
from proxy.server.listener.accept.admission import LimitedAdmission
from proxy.server.listener.accept.proxy_headers import ProxyHeaders
from proxy.server.listener.closed_connections import ClosedConnections
from proxy.tasks import Tasks
from proxy.wire.proxy_protocol import V2_SIGNATURE
from tests.support.waiting import reached

BALANCER = Origin("10.0.0.5", 4000)
STRANGER = Origin("192.0.2.9", 4000)
V1 = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 9092\r\n"
V2_LOCAL = V2_SIGNATURE + struct.pack("!BBH", 0x20, 0, 0)
REQUEST = b"\0\0\0\x0e\0\x12\0\0"


class Kit:
    """A connection of a load balancer, and what became of it."""

    def __init__(self, *, others: str = "reject", seconds: float = 10.0) -> None:
        self.far, self.near = socket.socketpair()
        self.near.setblocking(False)
        self.closed = ClosedConnections("clients")
        self.admission = LimitedAdmission(1, 0)
        self.tasks = Tasks()
        self.origins: list[Origin] = []
        settings = ProxyProtocol(
            senders=("10.0.0.0/24",), others="accept" if others == "accept" else "reject"
        )
        self.headers = ProxyHeaders(
            settings, admission=self.admission, closed=self.closed, seconds=seconds, tasks=self.tasks
        )

    def begin(self, origin: Origin = BALANCER) -> None:
        self.headers.read(self.near, origin, self._then)

    def _then(self, client: socket.socket, origin: Origin) -> None:
        assert client is self.near
        assert not self.admission.full, "the opener counts it itself"
        self.origins.append(origin)

    async def origin(self) -> Origin:
        await reached(lambda: len(self.origins) == 1, "the header")
        return self.origins[0]

    async def rejection(self) -> dict[str, int]:
        await reached(lambda: self.near.fileno() == -1 and not self.admission.full, "its end")
        await reached(lambda: len(self.closed.by_reason) > 0, "the count")
        return self.closed.by_reason


@pytest.fixture
async def kit() -> AsyncIterator[Kit]:
    made = Kit()
    yield made
    await made.tasks.cancel()
    made.near.close()
    made.far.close()


async def test_the_header_s_address_is_the_client_s(kit: Kit) -> None:
    kit.far.sendall(V1 + REQUEST)
    kit.begin()
    assert kit.admission.full, "it counts as soon as it is accepted"
    origin = await kit.origin()
    assert (origin.address, origin.peer, origin.stated) == ("192.0.2.1", "192.0.2.1:56324", True)
    assert kit.near.recv(100) == REQUEST
    assert kit.closed.by_reason == {}


async def test_a_header_that_arrives_byte_by_byte(kit: Kit) -> None:
    kit.begin()
    for place in range(len(V1)):
        kit.far.sendall(V1[place : place + 1])
        await asyncio.sleep(0)
    kit.far.sendall(REQUEST)
    assert (await kit.origin()).address == "192.0.2.1"
    await reached(lambda: kit.near.recv(100, socket.MSG_PEEK) == REQUEST, "the bytes behind it")


async def test_a_connection_of_the_balancer_s_own_has_its_address_and_not_the_trust(kit: Kit) -> None:
    kit.far.sendall(V2_LOCAL)
    kit.begin(Origin("10.0.0.7", 9))
    origin = await kit.origin()
    assert (origin.address, origin.peer, origin.stated) == ("10.0.0.7", "10.0.0.7:9", True)


@pytest.mark.parametrize("data", [REQUEST, b"\x16\x03\x01", b"PROXY TCP4 nonsense\r\n" + REQUEST])
async def test_a_missing_or_malformed_header_closes(
    kit: Kit, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    kit.far.sendall(data)
    with caplog.at_level(logging.WARNING):
        kit.begin()
        assert await kit.rejection() == {PROXY_HEADER: 1}
    assert [BALANCER.peer in line for line in caplog.messages] == [True]
    assert kit.origins == []


async def test_a_header_that_is_cut_off(kit: Kit) -> None:
    kit.far.sendall(V1[:-1])
    kit.begin()
    kit.far.shutdown(socket.SHUT_WR)
    assert await kit.rejection() == {PROXY_HEADER: 1}


async def test_a_health_check_without_a_byte_is_neither_counted_nor_logged(
    kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        kit.begin()
        kit.far.close()
        await reached(lambda: kit.near.fileno() == -1, "its end")
    assert (kit.closed.by_reason, caplog.messages, kit.admission.full) == ({}, [], False)


@pytest.mark.parametrize("start", [b"", V1[:20]])
async def test_a_sender_that_stalls_is_closed(start: bytes) -> None:
    kit = Kit(seconds=0.05)
    kit.far.sendall(start)
    kit.begin()
    assert await kit.rejection() == {PROXY_HEADER: 1}
    kit.far.close()


async def test_a_stranger_s_header_is_not_read(kit: Kit) -> None:
    kit.far.sendall(V1)
    kit.begin(STRANGER)
    assert await kit.rejection() == {UNTRUSTED_SENDER: 1}
    assert kit.origins == []


async def test_a_stranger_may_be_served_under_its_own_address() -> None:
    kit = Kit(others="accept")
    kit.far.sendall(V1)
    kit.begin(STRANGER)
    assert kit.origins == [STRANGER]
    assert kit.near.recv(200) == V1, "which is no Kafka request"
    kit.near.close()
    kit.far.close()
