"""Acceptor on real sockets: connections for which there is no room are accepted later, and none is lost."""

import asyncio
import errno
import socket
from collections.abc import Callable

import pytest

from proxy.server.listener import acceptor
from proxy.server.listener.acceptor import ACCEPTED_AT_A_TIME, Acceptor

HOST = "127.0.0.1"


class Taker:
    """Room for so many connections, and those that were taken."""

    def __init__(self, most: int = 1000) -> None:
        self.most = most
        self.taken: list[socket.socket] = []
        self.errors: list[int | None] = []
        self.waits = 0
        self.came = asyncio.Event()
        self._waiting: list[Callable[[], None]] = []

    @property
    def full(self) -> bool:
        return len(self.taken) >= self.most

    def call_with_room(self, call: Callable[[], None]) -> None:
        self._waiting.append(call)

    def take(self, client: socket.socket, address: str, peer: str) -> None:
        assert address == HOST
        assert peer.startswith(f"{HOST}:")
        self.taken.append(client)
        self.came.set()

    def accept_failed(self, error: OSError) -> None:
        self.errors.append(error.errno)
        self.came.set()

    def accepts_later(self) -> None:
        self.waits += 1
        self.came.set()

    def end_one(self) -> None:
        self.taken.pop().close()
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await self.came.wait()
                self.came.clear()


def clients(bound: socket.socket, count: int) -> list[socket.socket]:
    return [socket.create_connection(bound.getsockname()) for _ in range(count)]


def close(*sockets: socket.socket) -> None:
    for one in sockets:
        one.close()


async def test_every_connection_is_taken() -> None:
    bound = socket.create_server((HOST, 0), backlog=100)
    taker = Taker()
    accepts = Acceptor(bound, taker, taker)
    accepts.start()
    accepts.start()
    count = 2 * ACCEPTED_AT_A_TIME + 1
    connected = clients(bound, count)
    await taker.until(lambda: len(taker.taken) == count)
    assert not accepts.waits
    accepts.close()
    assert bound.fileno() == -1
    close(*connected, *taker.taken)


async def test_connections_without_room_are_accepted_later() -> None:
    bound = socket.create_server((HOST, 0), backlog=100)
    taker = Taker(most=2)
    accepts = Acceptor(bound, taker, taker)
    accepts.start()
    connected = clients(bound, 4)
    await taker.until(lambda: accepts.waits)
    assert (len(taker.taken), taker.waits) == (2, 1)
    for _ in range(2):
        taker.end_one()
        await taker.until(lambda: len(taker.taken) == 2)
    assert taker.waits == 3
    accepts.close()
    close(*connected, *taker.taken)


async def test_a_port_that_is_closed_while_it_waits_stays_closed() -> None:
    bound = socket.create_server((HOST, 0))
    taker = Taker(most=0)
    accepts = Acceptor(bound, taker, taker)
    accepts.start()
    assert accepts.waits
    accepts.close()
    taker.most = 1
    taker.taken.append(socket.socket())
    taker.end_one()
    assert bound.fileno() == -1


async def test_after_an_error_of_the_system_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "ACCEPT_RETRY_SECONDS", 0.0)

    class OutOfFiles(socket.socket):
        left = 2

        def accept(self) -> tuple[socket.socket, object]:
            if self.left:
                self.left -= 1
                raise OSError(errno.EMFILE, "too many open files")
            return super().accept()

    bound = OutOfFiles()
    bound.bind((HOST, 0))
    bound.listen()
    taker = Taker()
    accepts = Acceptor(bound, taker, taker)
    accepts.start()
    connected = clients(bound, 1)
    await taker.until(lambda: len(taker.taken) == 1)
    assert taker.errors == [errno.EMFILE] * 2
    accepts.close()
    close(*connected, *taker.taken)
