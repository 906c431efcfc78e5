"""The supervisor binds each port once, and all workers get its socket."""

import asyncio
import socket
from pathlib import Path

import pytest

from proxy.config.settings import Settings
from proxy.demo.ports import free_port_range
from proxy.errors import PortInUse
from proxy.server.listener.early_ports import EarlyPorts
from proxy.server.workers.ports import KeptPorts, WorkerPorts
from tests.support.process.settings import read

HOST = "127.0.0.1"


def settings_at(tmp_path: Path, port: int, more: str = "") -> Settings:
    return read(
        tmp_path,
        f"listeners: [{{bootstrap_port: {port}, broker_port_base: {port + 1}, broker_port_count: 2, {more}"
        "upstream: {bootstrap: ['k:9092']}}]\n",
    )


async def asked(kept: KeptPorts, port: int) -> socket.socket:
    """The socket that a worker gets."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    near.setblocking(False)
    loop = asyncio.get_running_loop()
    loop.add_reader(near, kept.answer, near)
    try:
        found = await asyncio.to_thread(WorkerPorts(far).take, HOST, port)
        assert found is not None
        return found
    finally:
        loop.remove_reader(near)
        near.close()
        far.close()


async def test_all_workers_accept_at_the_same_socket_which_outlives_each(tmp_path: Path) -> None:
    port = free_port_range(3)
    kept = KeptPorts(settings_at(tmp_path, port), EarlyPorts({}))
    kept.open()
    with socket.create_connection((HOST, port)) as client:
        one, other = await asked(kept, port), await asked(kept, port)
        one.close()
        accepted, address = other.accept()
        assert address == client.getsockname()
        accepted.close()
    broker = await asked(kept, port + 1)
    socket.create_connection((HOST, port + 1)).close()
    kept.close()
    socket.create_connection((HOST, port)).close()
    other.close()
    broker.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port))


async def test_a_port_in_use_is_an_error_with_the_reason(tmp_path: Path) -> None:
    port = free_port_range(3)
    kept = KeptPorts(settings_at(tmp_path, port), EarlyPorts({}))
    with socket.create_server((HOST, port)), pytest.raises(PortInUse, match=str(port)):
        await asked(kept, port)
    with socket.create_server((HOST, port)), pytest.raises(PortInUse):
        kept.open()


async def test_a_passed_socket_is_served(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as passed:
        port = passed.getsockname()[1]
        kept = KeptPorts(settings_at(tmp_path, port), EarlyPorts({(HOST, port): passed}))
        with await asked(kept, port) as found:
            assert found.getsockname() == (HOST, port)


async def test_connections_are_rejected_while_no_worker_accepts_them(tmp_path: Path) -> None:
    port = free_port_range(3)
    with socket.create_server((HOST, port + 2)) as passed:
        kept = KeptPorts(settings_at(tmp_path, port), EarlyPorts({(HOST, port + 2): passed}))
        kept.open()
        first = [await asked(kept, each) for each in (port + 1, port + 2)]
        waiting = socket.create_connection((HOST, port))
        kept.reject()
        with waiting, pytest.raises(ConnectionResetError):
            waiting.recv(1)
        for each in (port, port + 1):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((HOST, each))
        socket.create_connection((HOST, port + 2)).close()
        bootstrap, broker = await asked(kept, port), await asked(kept, port + 1)
        socket.create_connection((HOST, port + 1)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, port))
        kept.listen_again()
        socket.create_connection((HOST, port)).close()
        kept.close()
        for each in (*first, bootstrap, broker):
            each.close()


async def test_with_reuse_port_the_bootstrap_port_waits_for_a_worker(tmp_path: Path) -> None:
    port = free_port_range(3)
    kept = KeptPorts(settings_at(tmp_path, port, "reuse_port: true, "), EarlyPorts({}))
    kept.open()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port))
    kept.close()


def test_a_worker_whose_supervisor_is_gone_gets_no_port() -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    near.close()
    with far, pytest.raises(PortInUse):
        WorkerPorts(far).take(HOST, 1)


def test_every_port_of_a_worker_is_the_supervisors() -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with near, far:
        assert WorkerPorts(far).is_passed(HOST, 1)
