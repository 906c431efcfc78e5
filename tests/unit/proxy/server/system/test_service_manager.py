"""ServiceManager: the messages that systemd gets."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from proxy.server.system import service_manager
from proxy.server.system.service_manager import SERVING, ServiceManager

Message = dict[str, str]


class Systemd:
    """The socket of a service manager."""

    def __init__(self, address: str) -> None:
        self.environ = {"NOTIFY_SOCKET": address, "PATH": "/bin"}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._socket.setblocking(False)

    def close(self) -> None:
        self._socket.close()

    def messages(self) -> list[Message]:
        """The messages that have arrived since the last call."""
        found = []
        with suppress(BlockingIOError):
            while True:
                lines = self._socket.recv(4096).decode().split("\n")
                found.append(dict(line.split("=", 1) for line in lines))
        return found

    async def message(self) -> Message:
        async with asyncio.timeout(30):
            while not (found := self.messages()):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        [message] = found
        return message


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    manager = Systemd(str(tmp_path / "notify") if request.param == "path" else f"@{tmp_path}")
    yield manager
    manager.close()


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_manager, "READY_POLL_SECONDS", 0.005)
    monkeypatch.setattr(service_manager, "STATUS_SECONDS", 0.005)


@asynccontextmanager
async def following(
    manager: ServiceManager, problems: list[str], warnings: list[str]
) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(manager.follow(lambda: problems, lambda: warnings))
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_readiness_waits_for_the_last_problem(systemd: Systemd) -> None:
    problems = ["the cluster is away"]
    async with following(ServiceManager(systemd.environ), problems, []):
        await asyncio.sleep(0.05)
        assert systemd.messages() == []
        problems.clear()
        assert await systemd.message() == {"READY": "1", "STATUS": SERVING}


async def test_a_start_succeeds_while_the_cluster_is_away(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_manager, "START_SECONDS", 0.02)
    problems = ["the cluster\nis away"]
    async with following(ServiceManager(systemd.environ), problems, []):
        assert await systemd.message() == {"READY": "1", "STATUS": "the cluster is away"}
        problems.clear()
        assert await systemd.message() == {"STATUS": SERVING}


async def test_the_status_changes_with_what_is_wrong(systemd: Systemd) -> None:
    problems: list[str] = []
    warnings: list[str] = []
    async with following(ServiceManager(systemd.environ), problems, warnings):
        await systemd.message()
        warnings.append("a certificate expires")
        assert await systemd.message() == {"STATUS": "a certificate expires"}
        problems.append("a port is not bound")
        assert await systemd.message() == {"STATUS": "a port is not bound"}


async def test_a_reload(systemd: Systemd) -> None:
    manager = ServiceManager(systemd.environ)
    manager.reloading()
    manager.reloaded()
    assert systemd.messages() == []
    async with following(manager, [], []):
        await systemd.message()
        manager.reloading()
        manager.reloaded()
        begin, end = systemd.messages()
    assert begin.keys() == {"RELOADING", "MONOTONIC_USEC"}
    assert end == {"READY": "1"}


def test_the_shutdown(systemd: Systemd) -> None:
    ServiceManager(systemd.environ).stopping()
    assert [message["STOPPING"] for message in systemd.messages()] == ["1"]


def test_child_processes_do_not_get_the_variable(systemd: Systemd) -> None:
    ServiceManager(systemd.environ)
    assert systemd.environ == {"PATH": "/bin"}


async def test_nothing_is_sent_without_a_service_manager(caplog: pytest.LogCaptureFixture) -> None:
    manager = ServiceManager({})
    async with following(manager, [], []) as task:
        await asyncio.wait_for(task, 30)
    manager.stopping()
    assert caplog.records == []


def test_a_service_manager_that_has_gone_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "none")}).stopping()
    assert len(caplog.records) == 1
