"""Ports: the error for a port that cannot be bound has the key, the port and the address."""

import socket

import pytest

from proxy.errors import PortInUse
from proxy.server.listener.ports import bind

HOST = "127.0.0.1"


def test_a_port_that_is_in_use() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=rf"^admin\.port: .*{port}.*{HOST}"):
            bind(HOST, port, "admin.port: ")


def test_an_address_of_another_machine() -> None:
    with pytest.raises(PortInUse, match=r"192\.0\.2\.1.* bind "):
        bind("192.0.2.1", 9)


def test_a_port_for_root(monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(self: socket.socket, address: tuple[str, int]) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", reject)
    with pytest.raises(PortInUse, match="CAP_NET_BIND_SERVICE"):
        bind(HOST, 80)


def test_a_free_port() -> None:
    with bind(HOST, 0) as bound:
        assert bound.getsockname()[1] > 0
