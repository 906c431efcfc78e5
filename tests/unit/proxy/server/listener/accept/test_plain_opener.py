"""PlainOpener on real sockets: connections are counted before they are made."""

import asyncio
import socket

import pytest

from proxy.server.listener.accept.acceptor import Acceptor
from proxy.server.listener.accept.admission import UnlimitedAdmission
from proxy.server.listener.accept.plain_opener import PlainOpener
from proxy.tasks import Tasks

HOST = "127.0.0.1"


class Entry:
    def __init__(self, *, allows: bool = True) -> None:
        self.room = UnlimitedAdmission()
        self.entered: list[str] = []
        self.left: list[str] = []
        self._allows = allows

    def enter(self, address: str, peer: str) -> bool:
        self.entered.append(peer)
        return self._allows

    def abandoned(self, address: str) -> None:
        self.left.append(address)

    def accept_failed(self, error: OSError) -> None:
        raise error

    def accepts_later(self) -> None:
        raise AssertionError("there is room")


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"hello")
        transport.close()


async def received(entry: Entry) -> bytes:
    """What a client receives."""
    tasks = Tasks()
    bound = socket.create_server((HOST, 0))
    port = bound.getsockname()[1]
    server = Acceptor(bound, entry, PlainOpener(lambda origin: Echo(), entry.abandoned), tasks)
    server.start()
    assert not server.waits
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection(HOST, port)
        try:
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()
            server.close()
            await tasks.cancel()


@pytest.mark.parametrize("allows", [True, False])
async def test_a_client_is_served_if_it_may_enter(allows: bool) -> None:
    entry = Entry(allows=allows)
    assert await received(entry) == (b"hello" if allows else b"")
    assert len(entry.entered) == 1
    assert entry.left == []


async def test_a_connection_that_breaks_before_it_is_made_counts_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(*_: object) -> None:
        raise OSError("it is closed")

    monkeypatch.setattr(asyncio.get_running_loop(), "connect_accepted_socket", broken, raising=False)
    entry = Entry()
    assert await received(entry) == b""
    assert entry.left == [HOST]
