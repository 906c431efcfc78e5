"""ListeningSockets: when a port accepts connections."""

import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from proxy.demo.ports import free_port_range
from proxy.server.listener import sockets as module
from proxy.server.listener.accept.acceptor import Room
from proxy.server.listener.accept.admission import LimitedAdmission, UnlimitedAdmission
from proxy.server.listener.ports.broker_ports import bind, listen
from proxy.server.listener.sockets import ListeningSockets
from proxy.tasks import Tasks
from tests.support.waiting import reached

HOST = "127.0.0.1"


def listening(
    bootstrap: socket.socket | None,
    room: Room | None = None,
    open_port: Callable[[socket.socket], None] = listen,
) -> ListeningSockets:
    entry = SimpleNamespace(
        room=room or UnlimitedAdmission(), accepts_later=lambda: None, abandoned=lambda address: None
    )
    return ListeningSockets(
        listener="clients",
        bootstrap=bootstrap,
        tls=None,
        handshake_seconds=1.0,
        connections=cast("Any", entry),
        tasks=Tasks(),
        open_port=open_port,
    )


def accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((HOST, port)) == 0


async def test_the_bootstrap_port_accepts_nobody_until_it_is_opened() -> None:
    bootstrap = bind(HOST, 0)
    port = bootstrap.getsockname()[1]
    sockets = listening(bootstrap)
    assert not accepts(port)
    sockets.open_bootstrap()
    sockets.open_bootstrap()
    assert sockets.bootstrap_open
    assert accepts(port)
    sockets.close()
    assert not accepts(port)


async def test_a_bootstrap_port_that_listens_too_early_rejects_clients_until_it_is_served() -> None:
    port = free_port_range(1)
    bootstrap = bind(HOST, port)
    bootstrap.listen()
    sockets = listening(bootstrap)
    with socket.create_connection((HOST, port)) as waits:
        sockets.stop_waiting()
        with pytest.raises(ConnectionResetError):
            waits.recv(1)
    assert not accepts(port)
    sockets.open_bootstrap()
    sockets.stop_waiting()
    assert accepts(port)
    sockets.close()
    sockets.stop_waiting()


async def test_a_bootstrap_port_at_which_another_process_listens_is_opened_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the socket is bound and does not listen, another one with SO_REUSEADDR can take the port."""
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.02)
    port = free_port_range(1)
    sockets = listening(bind(HOST, port))
    with bind(HOST, port) as other:
        other.listen()
        sockets.open_bootstrap()
        sockets.open_bootstrap()
        assert not sockets.bootstrap_open
        assert str(port) in sockets.bootstrap_problem
    await reached(lambda: sockets.bootstrap_open, "the port")
    assert not sockets.bootstrap_problem
    assert accepts(port)
    sockets.close()


async def test_a_supervisor_opens_the_bootstrap_port() -> None:
    opened: list[socket.socket] = []
    with bind(HOST, 0) as bootstrap:
        sockets = listening(bootstrap, open_port=opened.append)
        sockets.open_bootstrap()
        assert opened == [bootstrap]
        sockets.close()


async def test_nothing_is_opened_after_the_end() -> None:
    bootstrap, broker = bind(HOST, 0), bind(HOST, 0)
    sockets = listening(bootstrap)
    sockets.close()
    sockets.open_bootstrap()
    sockets.serve_broker(3, broker)
    assert not sockets.bootstrap_open
    assert (bootstrap.fileno(), broker.fileno()) == (-1, -1), "both are closed"


async def test_a_broker_s_port_is_closed_at_the_end() -> None:
    broker = bind(HOST, 0)
    sockets = listening(None)
    sockets.serve_broker(3, broker)
    assert sockets.warnings() == []
    sockets.close()
    assert broker.fileno() == -1


async def test_connections_that_wait_for_room_are_a_warning() -> None:
    admission = LimitedAdmission(1, 0)
    admission.enter("10.0.0.1")
    sockets = listening(bind(HOST, 0), room=admission)
    sockets.open_bootstrap()
    assert len(sockets.warnings()) == 1
    admission.leave("10.0.0.1")
    assert sockets.warnings() == []
    sockets.close()


async def test_a_listener_without_a_bootstrap_port_opens_none() -> None:
    sockets = listening(None)
    sockets.open_bootstrap()
    assert not sockets.bootstrap_open
    sockets.close()
