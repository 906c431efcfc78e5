"""The event loop of the load pair."""

import socket
import time
from collections.abc import Iterator

import pytest

from bench.load.poller import READ, WRITE, Poller


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    near.setblocking(False)
    with near, far:
        yield near, far


def test_a_socket_is_called_back_when_it_can_be_read(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    poller, masks = Poller(), list[int]()
    poller.add(near, masks.append)
    assert poller.wait(0) == 0
    far.sendall(b"x")
    assert poller.wait(5) == 1
    assert masks == [READ]


def test_writes_are_watched_while_they_are_wanted(pair: tuple[socket.socket, socket.socket]) -> None:
    near, _ = pair
    poller, masks = Poller(), list[int]()
    poller.add(near, masks.append)
    poller.watch_writes(near, True)
    assert poller.wait(5) == 1
    poller.watch_writes(near, False)
    assert poller.wait(0) == 0
    assert masks == [WRITE]


def test_a_callback_may_remove_another_ready_socket(pair: tuple[socket.socket, socket.socket]) -> None:
    """Both are ready in the same wait: the one that is removed is not called."""
    near, far = pair
    poller, called = Poller(), list[socket.socket]()

    def call(sock: socket.socket, other: socket.socket) -> None:
        called.append(sock)
        poller.remove(other)

    poller.add(near, lambda _: call(near, far))
    poller.add(far, lambda _: call(far, near))
    near.sendall(b"x")
    far.sendall(b"x")
    assert poller.wait(5) == 2
    assert len(called) == 1


def test_a_fine_wait_ends_when_a_socket_is_ready(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    poller, masks = Poller(), list[int]()
    poller.add(near, masks.append)
    far.sendall(b"x")
    began = time.monotonic()
    poller.wait_until_due(60.0)
    assert masks == [READ]
    assert time.monotonic() - began < 30
    near.recv(1)
    poller.wait_until_due(0.0)
    poller.wait_until_due(0.0005)
    assert masks == [READ]
