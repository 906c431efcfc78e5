"""BrokerSide: what waits for the broker's socket, and how the socket ends."""

import asyncio
import socket
from typing import Any, cast

import pytest

from proxy.relay.close_reasons import BROKER_CLOSED
from proxy.server.connection.broker.side import TLS_WRITE_BUFFER_BYTES, WRITE_BUFFER_BYTES, BrokerSide
from proxy.server.connection.connection import Connection


class Host:
    """Learns when a connection ends."""

    def __init__(self) -> None:
        self.ended_with: list[str] = []

    def ended(self, connection: Connection, reason: str) -> None:
        self.ended_with.append(reason)

    def left(self, connection: Connection) -> None:
        pass


class Transport:
    """A socket's transport; over TLS it cannot be half-closed."""

    def __init__(self, tls: bool = False) -> None:
        self.calls: list[object] = []
        self._tls = tls

    def get_extra_info(self, name: str) -> Any:
        if name == "socket":
            return cast("Any", self)
        return object() if self._tls and name in ("sslcontext", "ssl_object") else None

    @property
    def family(self) -> int:
        return socket.AF_INET

    def fileno(self) -> int:
        return 7

    def can_write_eof(self) -> bool:
        return not self._tls

    def is_closing(self) -> bool:
        return "close" in self.calls

    def set_write_buffer_limits(self, high: int) -> None:
        self.calls.append(high)

    def write(self, data: bytes) -> None:
        self.writelines([data])

    def writelines(self, pieces: list[bytes]) -> None:
        self.calls.append(b"".join(pieces))

    def __getattr__(self, name: str) -> Any:
        return lambda: self.calls.append(name)


def side(host: Host | None = None) -> BrokerSide:
    """The broker's side of a connection without a client."""
    loop = asyncio.get_running_loop()
    # Compiled code takes no other class than a connection.
    return BrokerSide(Connection(cast("Any", host or Host()), 1, loop), loop)


async def test_bytes_wait_for_the_socket_and_one_connects() -> None:
    broker = side()
    assert broker.gone
    assert [broker.wait_with([b"a"]), broker.wait_with([b"b", b"c"])] == [True, False]
    assert not broker.gone
    transport = Transport()
    broker.connection_made(cast("Any", transport))
    assert transport.calls == [WRITE_BUFFER_BYTES, b"abc"]
    assert (broker.connecting, broker.gone) == (False, False)


async def test_over_tls_some_output_is_buffered() -> None:
    broker = side()
    transport = Transport(tls=True)
    broker.connection_made(cast("Any", transport))
    assert transport.calls[0] == TLS_WRITE_BUFFER_BYTES


async def test_what_waited_is_dropped_when_the_broker_cannot_be_reached() -> None:
    broker = side()
    broker.wait_with([b"old"])
    broker.failed()
    assert broker.gone
    assert broker.wait_with([b"new"])
    transport = Transport()
    broker.connection_made(cast("Any", transport))
    assert transport.calls[1] == b"new"


@pytest.mark.parametrize(("tls", "ending"), [(False, ["write_eof", "resume_reading"]), (True, ["close"])])
async def test_it_is_half_closed_so_that_the_broker_reads_to_the_end(tls: bool, ending: list[str]) -> None:
    broker = side()
    transport = Transport(tls)
    broker.connection_made(cast("Any", transport))
    broker.end()
    assert transport.calls[2:] == ending


async def test_over_tls_it_stays_open_until_responses_have_arrived_that_quotas_need() -> None:
    broker = side()
    transport = Transport(tls=True)
    broker.connection_made(cast("Any", transport))
    broker.await_late(True)
    broker.end()
    assert transport.calls[2:] == ["resume_reading"]
    broker.await_late(True)
    broker.await_late(False)
    broker.await_late(False)
    assert transport.calls[3:] == ["close"]


async def test_an_end_before_it_is_connected_happens_then() -> None:
    broker = side()
    broker.wait_with([b"acks=0"])
    broker.end()
    transport = Transport()
    broker.connection_made(cast("Any", transport))
    assert transport.calls == [WRITE_BUFFER_BYTES, b"acks=0", "write_eof", "resume_reading"]


async def test_a_socket_that_is_lost_ends_the_connection() -> None:
    host = Host()
    broker = side(host)
    broker.connection_made(cast("Any", Transport()))
    assert not broker.eof_received(), "it is closed"
    broker.connection_lost(None)
    assert broker.gone
    assert host.ended_with == [BROKER_CLOSED]


async def test_a_broker_that_waits_for_events_is_closed_at_once() -> None:
    broker = side()
    transport = Transport()
    broker.connection_made(cast("Any", transport))
    broker.end(unread=True)
    assert transport.calls[2:] == ["close"]
