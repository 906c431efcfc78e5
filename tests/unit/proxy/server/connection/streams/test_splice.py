"""Splice on real sockets: every byte once and in order, and nothing left in the pipe."""

import gc
import os
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from proxy.server.connection.streams.splice import LEAST_PIPE_BYTES, PIPE_BYTES, Splice

pytestmark = pytest.mark.skipif(not hasattr(os, "splice"), reason="this system does not splice")
NOTHING = memoryview(b"")
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def splice() -> Iterator[Splice]:
    made = Splice()
    made.open()
    assert made.ready()
    yield made
    made.close()


@pytest.fixture
def pairs() -> Iterator[tuple[Pair, Pair]]:
    """The broker and its socket, the client's socket and the client; TCP, nothing blocks."""
    with ExitStack() as stack:
        made = []
        for _ in range(2):
            with socket.create_server(("127.0.0.1", 0)) as server:
                near = stack.enter_context(socket.create_connection(server.getsockname()))
                far = stack.enter_context(server.accept()[0])
            made.append((near, far))
        for sock in (made[0][1], made[1][0]):
            sock.setblocking(False)
        for sock in (made[0][0], made[1][1]):
            sock.settimeout(30)
        yield made[0], made[1]


def readable(sock: socket.socket) -> int:
    """The descriptor of a socket on which something has arrived."""
    assert select.select([sock], [], [], 30)[0]
    return sock.fileno()


def received(sock: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        got += sock.recv(size - len(got))
    return got


def test_head_and_rest_in_order(splice: Splice, pairs: tuple[Pair, Pair]) -> None:
    (broker, source), (target, client) = pairs
    head = bytes(range(256)) * (LEAST_PIPE_BYTES // 256)
    broker.sendall(b"the rest, and more")
    taken = splice.fill(memoryview(head), readable(source), 8)
    assert taken == 8
    assert splice.empty_into(target.fileno(), len(head) + taken) == b""
    assert received(client, len(head) + 8) == head + b"the rest"
    assert source.recv(100) == b", and more"


def test_where_nothing_is_there_nothing_is_taken(splice: Splice, pairs: tuple[Pair, Pair]) -> None:
    (broker, source), (target, client) = pairs
    assert splice.fill(memoryview(b"head"), source.fileno(), 100) == 0
    assert splice.empty_into(target.fileno(), 4) == b""
    assert received(client, 4) == b"head"
    broker.close()
    assert splice.fill(NOTHING, readable(source), 100) == 0
    assert splice.empty_into(target.fileno(), 0) == b""
    assert source.recv(100) == b""  # whoever reads it still sees the end
    assert splice.works


def test_what_the_target_does_not_take_comes_back(splice: Splice, pairs: tuple[Pair, Pair]) -> None:
    (broker, source), (target, client) = pairs
    target.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    left: list[bytes] = []
    sent, passed = b"", 0
    while not left:
        data = bytes([len(sent) % 251]) * 50_000
        broker.sendall(data)
        sent += data
        taken = splice.fill(NOTHING, readable(source), PIPE_BYTES)
        rest = splice.empty_into(target.fileno(), taken)
        passed += taken - len(rest)
        left += [rest] if rest else []
    taken = passed + len(left[0])
    assert received(client, passed) + left[0] == sent[:taken]
    client.setblocking(False)
    with pytest.raises(BlockingIOError):
        client.recv(1)  # nothing of the rest stayed in the pipe
    assert splice.works


def test_a_client_that_has_gone_gets_nothing(splice: Splice, pairs: tuple[Pair, Pair]) -> None:
    (broker, source), (target, client) = pairs
    client.close()
    target.sendall(b"the peer resets")
    # Its end alone makes the socket readable, too.
    poll = select.poll()
    poll.register(target, 0)
    assert poll.poll(30_000), "the reset"
    broker.sendall(b"for nobody")
    taken = splice.fill(NOTHING, readable(source), 100)
    assert splice.empty_into(target.fileno(), taken) == b"for nobody"
    assert splice.works


def test_what_is_left_by_an_exception_is_thrown_away(splice: Splice, pairs: tuple[Pair, Pair]) -> None:
    (broker, source), (target, client) = pairs
    broker.sendall(b"one client's")
    splice.fill(memoryview(b"head"), readable(source), 100)
    assert splice.ready()
    broker.sendall(b"another client's")
    taken = splice.fill(NOTHING, readable(source), 100)
    assert splice.empty_into(target.fileno(), taken) == b""
    assert received(client, 16) == b"another client's"


def test_one_that_is_rejected_is_not_tried_again(splice: Splice, pairs: tuple[Pair, Pair]) -> None:
    (_, _), (target, client) = pairs
    with select.epoll() as nothing_to_splice:
        assert splice.fill(memoryview(b"head"), nothing_to_splice.fileno(), 100) == 0
    assert splice.empty_into(target.fileno(), 4) == b""
    assert received(client, 4) == b"head"
    assert not splice.works
    assert not splice.ready()


def test_a_target_that_rejects_costs_nothing_of_what_was_taken(
    splice: Splice, pairs: tuple[Pair, Pair]
) -> None:
    (broker, source), _ = pairs
    broker.sendall(b"bytes")
    taken = splice.fill(memoryview(b"head and "), readable(source), 100)
    with select.epoll() as nothing_to_splice:
        rest = splice.empty_into(nothing_to_splice.fileno(), 9 + taken)
    assert rest == b"head and bytes"
    assert not splice.works


def test_before_it_is_open_and_after_its_end_it_does_not_work() -> None:
    made = Splice()
    assert not made.works
    made.open()
    assert made.works
    before = pipes()
    made.open()
    assert pipes() == before
    made.close()
    assert not made.works
    assert sys.platform != "linux" or len(before - pipes()) == 2


def pipes() -> set[tuple[str, str]]:
    """The descriptors of this process that are ends of pipes, each with its pipe; none if the system does not
    tell.
    """
    if sys.platform != "linux":
        return set()
    gc.collect()
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.add((name, os.readlink(f"/proc/self/fd/{name}")))
    return {(name, target) for name, target in found if target.startswith("pipe:")}
