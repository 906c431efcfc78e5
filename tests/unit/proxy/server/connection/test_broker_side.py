"""BrokerSide: what waits for the broker's socket, and how the socket ends."""

import asyncio
import socket
from typing import Any, cast

import pytest

from proxy.server.connection.broker_side import TLS_WRITE_BUFFER_BYTES, WRITE_BUFFER_BYTES, BrokerSide


class Events:
    """A connection: it keeps what its broker's side tells it."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def broker_connected(self) -> None:
        self.told.append("connected")

    def broker_sent(self, data: bytes) -> None:
        self.told.append(data)

    def broker_full(self, full: bool) -> None:
        self.told.append(full)

    def broker_lost(self) -> None:
        self.told.append("lost")


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

    def writelines(self, pieces: list[bytes]) -> None:
        self.calls.append(b"".join(pieces))

    def __getattr__(self, name: str) -> Any:
        return lambda: self.calls.append(name)


def side() -> tuple[BrokerSide, Events]:
    events = Events()
    return BrokerSide(cast("Any", events), asyncio.get_running_loop()), events


async def test_bytes_wait_for_the_socket_and_one_connects() -> None:
    broker, events = side()
    assert broker.gone
    assert [broker.wait_with([b"a"]), broker.wait_with([b"b", b"c"])] == [True, False]
    assert not broker.gone
    transport = Transport()
    broker.connection_made(cast("Any", transport))
    assert transport.calls == [WRITE_BUFFER_BYTES, b"abc"]
    assert (events.told, broker.connecting, broker.gone) == (["connected"], False, False)


async def test_over_tls_some_output_is_buffered() -> None:
    broker, _ = side()
    transport = Transport(tls=True)
    broker.connection_made(cast("Any", transport))
    assert transport.calls[0] == TLS_WRITE_BUFFER_BYTES


async def test_what_waited_is_dropped_when_the_broker_cannot_be_reached() -> None:
    broker, _ = side()
    broker.wait_with([b"old"])
    broker.failed()
    assert broker.gone
    assert broker.wait_with([b"new"])
    transport = Transport()
    broker.connection_made(cast("Any", transport))
    assert transport.calls[1] == b"new"


@pytest.mark.parametrize(("tls", "ending"), [(False, ["write_eof", "resume_reading"]), (True, ["close"])])
async def test_it_is_half_closed_so_that_the_broker_reads_to_the_end(tls: bool, ending: list[str]) -> None:
    broker, _ = side()
    transport = Transport(tls)
    broker.connection_made(cast("Any", transport))
    broker.end()
    assert transport.calls[2:] == ending


async def test_an_end_before_it_is_connected_happens_then() -> None:
    broker, events = side()
    broker.wait_with([b"acks=0"])
    broker.end()
    transport = Transport()
    broker.connection_made(cast("Any", transport))
    assert transport.calls == [WRITE_BUFFER_BYTES, b"acks=0", "write_eof", "resume_reading"]
    assert events.told == [], "the connection has ended"


async def test_what_the_socket_tells_goes_to_the_connection() -> None:
    broker, events = side()
    broker.connection_made(cast("Any", Transport()))
    broker.data_received(b"response")
    broker.pause_writing()
    broker.resume_writing()
    broker.connection_lost(None)
    assert events.told == ["connected", b"response", True, False, "lost"]
    assert broker.gone
