"""The processes of workers as forks, with real processes; test_supervisor.py runs both kinds of start."""

import asyncio
import os
import signal
import socket
from typing import Never

import pytest
from msgspec.structs import replace

from proxy.config.quotas import Quotas
from proxy.config.settings import Listener, Settings, Upstream
from proxy.server.workers.connection_counts import ConnectionCounts
from proxy.server.workers.starts import ForkedChild, FromSupervisor, fork_workers

SETTINGS = Settings(listeners=(Listener(upstream=Upstream(bootstrap=("127.0.0.1:19092",))),), workers=2)
SECONDS = 30.0


def until_the_supervisor_is_gone(given: FromSupervisor) -> Never:
    """What a worker does in these tests; its exit code tells its number."""
    with socket.socket(fileno=given.channel) as channel:
        channel.recv(1)
    os._exit(10 + given.number)


async def test_each_fork_finds_its_own_supervisor_gone() -> None:
    """No other fork keeps the supervisor's ends open."""
    prepared: list[bool] = []
    started = fork_workers(SETTINGS, ConnectionCounts(2), lambda: prepared.append(True))
    if isinstance(started, FromSupervisor):
        until_the_supervisor_is_gone(started)
    assert prepared == [True]
    assert [each.number for each in started] == [1, 2]
    assert len({each.place for each in started}) == 2
    for number, each in enumerate(started, 1):
        with each.ports:
            each.channel.close()
            assert await asyncio.wait_for(each.child.wait(), SECONDS) == 10 + number


async def test_what_has_ended_gets_no_signal() -> None:
    pid = os.fork()
    if pid == 0:
        signal.pause()
    child = ForkedChild(pid)
    child.send_signal(signal.SIGKILL)
    assert await asyncio.wait_for(child.wait(), SECONDS) == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        child.send_signal(signal.SIGKILL)


def test_an_operators_code_is_not_forked() -> None:
    settings = replace(SETTINGS, quotas=Quotas(callback="module.Class"))
    assert fork_workers(settings, ConnectionCounts(2), lambda: pytest.fail("prepared")) == []


def test_a_system_that_starts_no_more_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor tries again; no place is lost."""

    def fails() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", fails)
    counts = ConnectionCounts(1)
    for _ in range(9):
        assert fork_workers(SETTINGS, counts, lambda: None) == []
    assert counts.take() >= 0
