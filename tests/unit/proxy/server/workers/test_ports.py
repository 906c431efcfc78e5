"""The supervisor binds each port once, and all workers get its socket."""

import asyncio
import socket
from pathlib import Path

import pytest

from proxy.config.settings import Settings
from proxy.demo.ports import free_port_range
from proxy.errors import PortInUse
from proxy.server.listener.ports.early_ports import EarlyPorts
from proxy.server.workers import ports as workers_ports
from proxy.server.workers.ports import REJECT_SECONDS, KeptPorts, WorkerPorts
from tests.support.process.settings import read
from tests.support.waiting import reached

HOST = "127.0.0.1"


def settings_at(tmp_path: Path, port: int, more: str = "") -> Settings:
    return read(
        tmp_path,
        f"listeners: [{{bootstrap_port: {port}, broker_port_base: {port + 1}, broker_port_count: 2, {more}"
        "upstream: {bootstrap: ['k:9092']}}]\n",
    )


class Worker:
    """A worker's side, with the supervisor's end attached."""

    def __init__(self, kept: KeptPorts) -> None:
        self._kept = kept
        self._near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        kept.attach(self._near)
        self._far = far
        self._ports = WorkerPorts(far)

    async def take(self, port: int) -> socket.socket:
        found = await asyncio.to_thread(self._ports.take, HOST, port)
        assert found is not None
        return found

    async def serve(self, port: int, bound: socket.socket) -> None:
        await asyncio.to_thread(self._ports.serve, HOST, port, bound)

    def end(self) -> None:
        self._kept.detach(self._near)
        self._far.close()


async def asked(kept: KeptPorts, port: int) -> socket.socket:
    """The socket that a worker gets."""
    worker = Worker(kept)
    try:
        return await worker.take(port)
    finally:
        worker.end()


def accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((HOST, port)) == 0


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
        worker = Worker(kept)
        bound = [await worker.take(port + each) for each in range(3)]
        kept.review(0.0)
        kept.review(REJECT_SECONDS)
        waiting = socket.create_connection((HOST, port))
        kept.review(REJECT_SECONDS + 0.1)
        with waiting, pytest.raises(ConnectionResetError):
            waiting.recv(1)
        assert [accepts(port + each) for each in range(3)] == [False, False, True]
        await worker.serve(port, bound[0])
        assert [accepts(port + each) for each in range(3)] == [True, True, True]
        worker.end()
        kept.close()
        for each in bound:
            each.close()


async def test_a_worker_that_serves_keeps_the_ports_open_until_it_ends(tmp_path: Path) -> None:
    """The supervisor knows it before anybody can: it need not ask the worker first."""
    port = free_port_range(3)
    kept = KeptPorts(settings_at(tmp_path, port), EarlyPorts({}))
    kept.open()
    kept.review(0.0)
    first, second = Worker(kept), Worker(kept)
    bound = await first.take(port)
    await first.serve(port, bound)
    kept.review(2 * REJECT_SECONDS)
    assert accepts(port)
    first.end()
    kept.review(2 * REJECT_SECONDS)
    kept.review(3 * REJECT_SECONDS)
    assert accepts(port)
    kept.review(3 * REJECT_SECONDS + 0.1)
    assert not accepts(port)
    await second.serve(port, bound)
    assert accepts(port)
    second.end()
    bound.close()
    kept.close()


async def test_the_ports_of_the_first_brokers_listen_before_a_worker_knows_them(tmp_path: Path) -> None:
    """A client that waits there is served; those of brokers that do not exist are closed then."""
    port = free_port_range(3)
    kept = KeptPorts(settings_at(tmp_path, port), EarlyPorts({}))
    kept.open()
    assert [accepts(port + each) for each in range(3)] == [True, True, True]
    with socket.create_connection((HOST, port + 1)) as waiting:
        worker = Worker(kept)
        bootstrap, broker = await worker.take(port), await worker.take(port + 1)
        await worker.serve(port, bootstrap)
        accepted = [broker.accept() for _ in range(2)]
        assert waiting.getsockname() in [address for _, address in accepted]
        assert [accepts(port + each) for each in range(3)] == [True, True, False]
    worker.end()
    for each in (bootstrap, broker, *(one for one, _ in accepted)):
        each.close()
    kept.close()


@pytest.mark.parametrize("how", ["rejects", "closes"])
async def test_the_ports_of_the_first_brokers_do_not_listen_for_ever(how: str, tmp_path: Path) -> None:
    port = free_port_range(3)
    kept = KeptPorts(settings_at(tmp_path, port), EarlyPorts({}))
    kept.open()
    if how == "rejects":
        kept.review(0.0)
        kept.review(REJECT_SECONDS + 0.1)
    else:
        kept.close()
    assert not any(accepts(port + each) for each in range(3))
    kept.close()


async def test_a_listener_without_a_worker_leaves_the_others_alone(tmp_path: Path) -> None:
    """Its cluster is away, and that of the other one is not. Brokers do not wait for clients to be served."""
    port = free_port_range(7)
    more = "broker_port_count: 1, upstream: {bootstrap: ['k:9092']}"
    settings = read(
        tmp_path,
        "listeners:\n"
        f"- {{name: a, bootstrap_port: {port}, broker_port_base: {port + 1}, {more}}}\n"
        f"- {{name: b, bootstrap_port: {port + 2}, broker_port_base: {port + 3}, {more}}}\n"
        f"- {{name: c, replication: true, broker_port_base: {port + 4}, broker_port_count: 2,"
        " upstream: {brokers: {1: 'k:9093'}}}\n",
    )
    kept = KeptPorts(settings, EarlyPorts({}))
    kept.open()
    worker = Worker(kept)
    bound = [await worker.take(port + each) for each in (0, 1, 2, 3, 5)]
    kept.review(0.0)
    await worker.serve(port, bound[0])
    kept.review(REJECT_SECONDS + 0.1)
    assert [accepts(port + each) for each in (0, 1, 2, 3, 5)] == [True, True, False, False, True]
    worker.end()
    for each in bound:
        each.close()
    kept.close()


async def test_a_bootstrap_port_that_another_process_has_taken_is_an_error(tmp_path: Path) -> None:
    """While the ports reject connections, they are bound and do not listen."""
    port = free_port_range(3)
    kept = KeptPorts(settings_at(tmp_path, port), EarlyPorts({}))
    kept.open()
    worker = Worker(kept)
    bound = await worker.take(port)
    kept.review(0.0)
    kept.review(REJECT_SECONDS + 0.1)
    with socket.create_server((HOST, port)), pytest.raises(PortInUse, match=str(port)):
        await worker.serve(port, bound)
    await worker.serve(port, bound)
    assert accepts(port)
    worker.end()
    bound.close()
    kept.close()


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


async def test_a_suspended_supervisor_delays_a_worker_that_serves_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker asks again every second, while a broker has no port, and its clients wait meanwhile. When
    the supervisor continues, each port gets its own socket, although the replies come late.
    """
    monkeypatch.setattr(workers_ports, "ANSWER_SECONDS", 0.05)
    port = free_port_range(3)
    kept = KeptPorts(settings_at(tmp_path, port), EarlyPorts({}))
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    kept.attach(near)
    ports = WorkerPorts(far)
    bound = await asyncio.to_thread(ports.take, HOST, port)
    assert bound is not None
    await asyncio.to_thread(ports.serve, HOST, port, bound)
    waited: list[float | None] = []
    # The event loop, which is the supervisor's, does not run here.
    for broker in (port + 1, port + 2):
        with pytest.raises(PortInUse, match=f"{broker} .*supervisor"):
            ports.take(HOST, broker)
        waited.append(far.gettimeout())
    for broker in (port + 1, port + 2):
        with pytest.raises(PortInUse, match=f"{broker} .*supervisor"):
            ports.take(HOST, broker)
        waited.append(far.gettimeout())
    assert waited == [0.05, 0.0, 0.0, 0.0]

    def taken(broker: int) -> socket.socket | None:
        try:
            return ports.take(HOST, broker)
        except PortInUse:
            return None

    found: dict[int, socket.socket] = {}

    def all_found() -> bool:
        for broker in (port + 1, port + 2):
            socket_of = None if broker in found else taken(broker)
            if socket_of is not None:
                found[broker] = socket_of
        return len(found) == 2

    await reached(all_found, "the sockets")
    assert {broker: each.getsockname()[1] for broker, each in found.items()} == {p: p for p in found}
    kept.detach(near)
    far.close()
    for each in (bound, *found.values()):
        each.close()
    kept.close()


def test_every_port_of_a_worker_is_the_supervisors() -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with near, far:
        assert WorkerPorts(far).is_passed(HOST, 1)
