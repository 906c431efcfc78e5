"""A peer, and how its process is started, awaited and stopped."""

import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from proxy.demo.ports import free_port_range

HOST: Final = "127.0.0.1"
START_SECONDS: Final = 30.0
STOP_SECONDS: Final = 10.0
"""The time between SIGTERM and SIGKILL."""
LAST_LINES: Final = 20
"""Lines of the output in an error."""


class Unavailable(Exception):
    """A peer cannot run on this machine; the message says why, and what to do."""


class StartFailed(Exception):
    """A process did not start; the message has the end of its log."""


@dataclass(frozen=True)
class Setting:
    """The setting of a peer: the broker's port, the number of client ids with quotas, and its folder."""

    broker_port: int
    tenants: int
    folder: Path
    tls: bool = False
    """Whether clients come over TLS, which ends at the peer."""
    start_seconds: float = START_SECONDS
    quotas: tuple[Mapping[str, object], ...] = ()
    """Further entries of quotas.clients."""
    kinds: tuple[str, ...] = ()
    """What else than the tenants' byte quotas is on: see bench.peers.quota_proxy.KINDS."""
    workers: int = 1
    port: int | None = None
    """Where HAProxy serves; None: any free port."""


def no_doubts() -> list[str]:
    """There is no reason to doubt the figures."""
    return []


class Running:
    """A started peer: clients connect to `port`. `pid` is None without a process to measure.

    `doubts`, called after the load, returns the reasons to doubt its figures.
    """

    doubts: Callable[[], list[str]] = staticmethod(no_doubts)

    def __init__(
        self,
        name: str,
        port: int,
        process: "subprocess.Popen[bytes] | None" = None,
        log: Path | None = None,
    ) -> None:
        self.name = name
        self.port = port
        self.process = process
        self.admin_port: int | None = None
        self._log = log

    @property
    def pid(self) -> int | None:
        """The process whose CPU and memory count, its children included."""
        return None if self.process is None else self.process.pid

    def last_words(self) -> str:
        """The end of the process's output."""
        if self._log is None:
            return ""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-LAST_LINES:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the process with SIGTERM, then with SIGKILL."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Peer(Protocol):
    """A proxy, or none, to measure."""

    @property
    def name(self) -> str:
        """Its name in the results."""

    def start(self, setting: Setting) -> Running:
        """Start the peer and return when it serves. Raises StartFailed."""


def free_ports(count: int) -> list[int]:
    """Return free loopback ports in ascending order, with a free one below each: the proxy's range of broker
    ports begins there.
    """
    first = free_port_range(2 * count)
    return list(range(first + 1, first + 2 * count, 2))


def accepts(port: int) -> bool:
    """Whether a process accepts connections at the loopback port."""
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def launch(
    name: str,
    command: Sequence[str],
    setting: Setting,
    port: int,
    *,
    environment: Mapping[str, str] | None = None,
    ready: Callable[[], bool] = lambda: True,
) -> Running:
    """Run the command with its output in `name`.log; return when it is `ready` and `port` accepts
    connections. Raises StartFailed if it ends, or if that takes longer than `setting.start_seconds`.
    """
    log = setting.folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
    running = Running(name, port, process, log)
    deadline = time.monotonic() + setting.start_seconds
    try:
        while not (ready() and accepts(port)):
            if process.poll() is not None:
                raise _failed(running, f"ended with exit code {process.returncode}")
            if time.monotonic() > deadline:
                raise _failed(running, f"does not serve port {port} after {setting.start_seconds:.0f} s")
            time.sleep(0.02)
    except BaseException as error:
        running.__exit__(type(error), error, error.__traceback__)
        raise
    return running


def _failed(running: Running, what: str) -> StartFailed:
    return StartFailed(f"{running.name} {what}; its output ends with:\n{running.last_words()}")
