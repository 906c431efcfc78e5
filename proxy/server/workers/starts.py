"""How the processes of workers start: as forks of the supervisor, or as programs of their own.

A start is mostly the import of modules. The workers that start with the supervisor are forks of it, so the
modules are imported once. Programs of their own replace workers later, because they may belong to a new
version.
"""

import asyncio
import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from proxy.config.settings import Settings
from proxy.server.workers.connection_counts import ConnectionCounts


class FromSupervisor(NamedTuple):
    """What a worker gets from its supervisor.

    number: counts the workers from 1.
    channel, ports: the descriptors of the sockets that are connected to the supervisor.
    counts, place: the descriptor of ConnectionCounts, and the worker's place there.
    """

    number: int
    channel: int
    ports: int
    counts: int
    place: int


class Child(Protocol):
    """A process of the supervisor."""

    @property
    def pid(self) -> int:
        """The process id."""

    async def wait(self) -> int:
        """Wait for its end; the exit code, negative for a signal."""

    def send_signal(self, signal: int) -> None:
        """Raises ProcessLookupError if it has ended."""


class Started(NamedTuple):
    """A process that has started as the worker `number`, with the supervisor's ends of its sockets."""

    number: int
    child: Child
    channel: socket.socket
    ports: socket.socket
    place: int


class ForkedChild:
    """A fork of this process. Fulfils Child."""

    def __init__(self, pid: int) -> None:
        self.pid: Final = pid
        self._code: int | None = None
        self._end: asyncio.Future[int] | None = None

    async def wait(self) -> int:
        if self._end is None:
            loop = asyncio.get_running_loop()
            self._end = loop.create_future()
            # Event loops wait only for the programs that they have started.
            threading.Thread(target=self._wait, args=(loop, self._end), daemon=True).start()
        return await asyncio.shield(self._end)

    def _wait(self, loop: asyncio.AbstractEventLoop, end: asyncio.Future[int]) -> None:
        _, status = os.waitpid(self.pid, 0)
        self._code = os.waitstatus_to_exitcode(status)
        with suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(end.set_result, self._code)

    def send_signal(self, signal: int) -> None:
        if self._code is not None:
            raise ProcessLookupError(self.pid)
        os.kill(self.pid, signal)


def fork_workers(
    settings: Settings, counts: ConnectionCounts, prepare: Callable[[], None]
) -> list[Started] | FromSupervisor:
    """Start the workers as forks. Returns in each of them, too, with what that one gets.

    Fewer than wanted if the system starts no more. Call it before any event loop or thread runs. `prepare`
    imports what the workers need.
    """
    if settings.quotas.callback is not None:
        # The operator's code is loaded, and may have started threads or opened connections.
        return []
    prepare()
    started: list[Started] = []
    for number in range(1, settings.worker_count + 1):
        try:
            found = _fork(number, counts)
        except OSError:
            break
        if isinstance(found, FromSupervisor):
            for other in started:
                other.channel.close()
                other.ports.close()
            return found
        started.append(found)
    return started


def _fork(number: int, counts: ConnectionCounts) -> Started | FromSupervisor:
    ends, far = _socket_pairs()
    place = counts.take()
    try:
        pid = os.fork()
    except OSError:
        counts.give_back(place)
        for each in (*ends, *far):
            each.close()
        raise
    if pid == 0:
        for each in ends:
            each.close()
        return FromSupervisor(number, far[0].detach(), far[1].detach(), counts.descriptor, place)
    for each in far:
        each.close()
    return Started(number, ForkedChild(pid), *ends, place)


async def spawn(number: int, path: Path, log_level: str, counts: ConnectionCounts) -> Started:
    """Start a program for the configuration file `path`. Raises OSError."""
    ends, far = _socket_pairs()
    place = counts.take()
    given = FromSupervisor(number, far[0].fileno(), far[1].fileno(), counts.descriptor, place)
    options: dict[str, object] = {"config": path, "log-level": log_level, **given._asdict()}
    try:
        process = await asyncio.create_subprocess_exec(
            # -P: no module of the current folder takes the place of one of the proxy's.
            *(sys.executable, "-P", "-m", "proxy", "worker"),
            *(f"--{name}={value}" for name, value in options.items()),
            pass_fds=(given.channel, given.ports, given.counts),
        )
    except OSError:
        counts.give_back(place)
        for each in ends:
            each.close()
        raise
    finally:
        for each in far:
            each.close()
    return Started(number, process, *ends, place)


def _socket_pairs() -> tuple[tuple[socket.socket, socket.socket], tuple[socket.socket, socket.socket]]:
    """The supervisor's ends of the channel and of the questions for ports, and the worker's."""
    channel, far_channel = socket.socketpair()
    ports, far_ports = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return (channel, ports), (far_channel, far_ports)
