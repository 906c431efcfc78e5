"""Acceptor on real sockets: connections for which there is no room are accepted later, and none is lost."""

import asyncio
import errno
import socket
from collections.abc import Callable

import pytest

from proxy.server.connection.origin import Origin
from proxy.server.listener.accept import acceptor
from proxy.server.listener.accept.acceptor import (
    ACCEPTED_AT_A_TIME,
    LEFT_AT_A_TIME,
    Acceptor,
    OriginReader,
    Room,
)
from proxy.tasks import Tasks

HOST = "127.0.0.1"


class Listener:
    """Room for so many connections, and those that were opened."""

    def __init__(self, most: int = 1000, *, rejects: bool = False) -> None:
        self.most = most
        self.opened: list[socket.socket] = []
        self.rejected = 0
        self.entered: list[str] = []
        self.errors: list[int | None] = []
        self.waits = 0
        self.others_first = False
        self.starts = 0
        self.came = asyncio.Event()
        self.tasks = Tasks()
        self._entered = 0
        self._rejects = rejects
        self._waiting: list[Callable[[], None]] = []

    def accept(self, bound: socket.socket, origins: OriginReader | None = None) -> Acceptor:
        return Acceptor(bound, self, self, self.tasks, origins)

    @property
    def room(self) -> Room:
        return self

    @property
    def full(self) -> bool:
        return self._entered >= self.most

    def accepts(self) -> None:
        self.starts += 1

    def call_with_room(self, call: Callable[[], None]) -> None:
        self._waiting.append(call)

    def enter(self, address: str, peer: str) -> bool:
        assert peer.startswith(f"{address}:")
        self.entered.append(address)
        if self._rejects:
            self.rejected += 1
            self.came.set()
            return False
        self._entered += 1
        return True

    async def open(self, client: socket.socket, origin: Origin) -> None:
        assert origin.peer.startswith(f"{origin.address}:")
        self.opened.append(client)
        self.came.set()

    def accept_failed(self, error: OSError) -> None:
        self.errors.append(error.errno)
        self.came.set()

    def accepts_later(self) -> None:
        self.waits += 1
        self.came.set()

    def end_one(self) -> None:
        self.opened.pop().close()
        self._entered -= 1
        self.call_all()

    def call_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await self.came.wait()
                self.came.clear()


def clients(bound: socket.socket, count: int) -> list[socket.socket]:
    return [socket.create_connection(bound.getsockname()) for _ in range(count)]


def close(*sockets: socket.socket) -> None:
    for one in sockets:
        one.close()


async def test_every_connection_is_opened() -> None:
    bound = socket.create_server((HOST, 0), backlog=100)
    listener = Listener()
    accepts = listener.accept(bound)
    accepts.start()
    accepts.start()
    count = 2 * ACCEPTED_AT_A_TIME + 1
    connected = clients(bound, count)
    await listener.until(lambda: len(listener.opened) == count)
    assert not accepts.waits
    assert listener.starts == 1
    accepts.close()
    assert bound.fileno() == -1
    close(*connected, *listener.opened)


async def test_the_kernel_probes_each_connection() -> None:
    bound = socket.create_server((HOST, 0))
    listener = Listener()
    accepts = listener.accept(bound)
    connected = clients(bound, 1)  # before the port accepts, as after a restart
    accepts.start()
    await listener.until(lambda: len(listener.opened) == 1)
    assert listener.opened[0].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    accepts.close()
    close(*connected, *listener.opened)


async def test_connections_without_room_are_accepted_later() -> None:
    bound = socket.create_server((HOST, 0), backlog=100)
    listener = Listener(most=2)
    accepts = listener.accept(bound)
    accepts.start()
    connected = clients(bound, 4)
    await listener.until(lambda: accepts.waits)
    assert (len(listener.opened), listener.waits) == (2, 1)
    for _ in range(2):
        listener.end_one()
        await listener.until(lambda: len(listener.opened) == 2)
    assert listener.waits == 3
    accepts.close()
    close(*connected, *listener.opened)


async def test_a_connection_that_others_do_not_take_is_accepted() -> None:
    bound = socket.create_server((HOST, 0), backlog=100)
    listener = Listener()
    listener.others_first = True
    accepts = listener.accept(bound)
    accepts.start()
    count = 2 * LEFT_AT_A_TIME + 1
    connected = clients(bound, count)
    await listener.until(lambda: len(listener.opened) == count)
    accepts.close()
    close(*connected, *listener.opened)


async def test_another_process_takes_the_connection_that_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acceptor, "GIVE_WAY_SECONDS", 600.0)
    bound = socket.create_server((HOST, 0), backlog=100)
    one, other = Listener(), Listener()
    one.others_first = True
    both = [one.accept(bound.dup()), other.accept(bound)]
    for each in both:
        each.start()
    connected = clients(bound, ACCEPTED_AT_A_TIME)
    await other.until(lambda: len(other.opened) == ACCEPTED_AT_A_TIME)
    for each in both:
        each.close()
    assert one.opened == []
    close(*connected, *other.opened)


async def test_a_port_that_is_closed_while_it_waits_stays_closed() -> None:
    bound = socket.create_server((HOST, 0))
    listener = Listener(most=0)
    accepts = listener.accept(bound)
    accepts.start()
    assert accepts.waits
    accepts.close()
    listener.most = 1
    listener.call_all()
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
    listener = Listener()
    accepts = listener.accept(bound)
    accepts.start()
    connected = clients(bound, 1)
    await listener.until(lambda: len(listener.opened) == 1)
    assert listener.errors == [errno.EMFILE] * 2
    accepts.close()
    close(*connected, *listener.opened)


async def test_a_connection_that_may_not_enter_is_closed() -> None:
    bound = socket.create_server((HOST, 0))
    listener = Listener(rejects=True)
    accepts = listener.accept(bound)
    accepts.start()
    [client] = clients(bound, 1)
    await listener.until(lambda: listener.rejected == 1)
    assert await asyncio.to_thread(client.recv, 1) == b""
    assert listener.opened == []
    accepts.close()
    close(client)


class Origins:
    """Keeps accepted connections until the test says where they come from."""

    def __init__(self, came: asyncio.Event) -> None:
        self.seen: list[tuple[socket.socket, Callable[[socket.socket, Origin], None]]] = []
        self._came = came

    def read(
        self, client: socket.socket, origin: Origin, then: Callable[[socket.socket, Origin], None]
    ) -> None:
        assert (origin.address, origin.stated) == (HOST, False)
        self.seen.append((client, then))
        self._came.set()


async def test_a_connection_is_counted_and_opened_under_the_address_that_was_read() -> None:
    bound = socket.create_server((HOST, 0))
    listener = Listener()
    origins = Origins(listener.came)
    accepts = listener.accept(bound, origins)
    accepts.start()
    connected = clients(bound, 2)
    await listener.until(lambda: len(origins.seen) == 2)
    assert listener.entered == []
    client, then = origins.seen[0]
    stated = Origin("192.0.2.1", 1, stated=True)
    then(client, stated)
    assert listener.entered == ["192.0.2.1"]
    accepts.close()
    late, then = origins.seen[1]
    then(late, stated)
    assert (listener.entered, late.fileno()) == (["192.0.2.1"], -1), "the port is closed"
    close(*connected, client)
