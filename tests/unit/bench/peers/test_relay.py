"""The plain relay: bytes of both directions, and the end of one side as the end of the other."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.peers.peer import HOST, Setting, free_ports
from bench.peers.relay import Relay


@pytest.fixture
def broker() -> Iterator[socket.socket]:
    with socket.create_server((HOST, 0)) as server:
        server.settimeout(30)
        yield server


def accept(broker: socket.socket) -> socket.socket:
    """The next connection that carries something; launch() opens one to see whether the relay serves."""
    while True:
        connection, _ = broker.accept()
        connection.settimeout(30)
        if connection.recv(1, socket.MSG_PEEK):
            return connection
        connection.close()


def got(sock: socket.socket, size: int) -> bytes:
    with sock.makefile("rb") as reader:
        return reader.read(size)


def test_what_one_side_sends_the_other_gets(broker: socket.socket, tmp_path: Path) -> None:
    """Also what the client has sent before the broker's side was connected, and more than buffers hold."""
    sent = bytes(range(256)) * 40_000
    with Relay().start(Setting(broker.getsockname()[1], 0, tmp_path)) as relay:
        assert relay.pid is not None
        with socket.create_connection((HOST, relay.port), timeout=30) as client:
            sending = threading.Thread(target=client.sendall, args=(sent,))
            sending.start()
            with accept(broker) as server:
                assert got(server, len(sent)) == sent
                sending.join()
                server.sendall(b"response")
                assert got(client, 8) == b"response"


def test_the_end_of_one_side_ends_the_other(broker: socket.socket, tmp_path: Path) -> None:
    with Relay().start(Setting(broker.getsockname()[1], 0, tmp_path)) as relay:
        for closes_first in ("client", "broker"):
            with socket.create_connection((HOST, relay.port), timeout=30) as client:
                client.sendall(b"x")
                with accept(broker) as server:
                    ends = {"client": client, "broker": server}
                    first = ends.pop(closes_first)
                    (other,) = ends.values()
                    server.recv(1)
                    first.close()
                    assert other.recv(1) == b""


def test_without_a_broker_the_client_is_disconnected(tmp_path: Path) -> None:
    (nobody,) = free_ports(1)
    with (
        Relay().start(Setting(nobody, 0, tmp_path)) as relay,
        socket.create_connection((HOST, relay.port), timeout=30) as client,
    ):
        assert client.recv(1) == b""
