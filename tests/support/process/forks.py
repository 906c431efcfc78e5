"""`quota-proxy` as a fork of a process that has imported its modules (fork_server.py)."""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import IO, Final

from proxy.demo.children import Children
from tests.support.process import fork_server


class Forked:
    """A process that the server has started. It has what tests use of subprocess.Popen."""

    def __init__(self, channel: socket.socket) -> None:
        """`channel`: brings the process id, and the exit code at the end."""
        self._channel: Final = channel
        self._code: int | None = None
        pid = self._number()
        assert pid is not None, "the fork server has ended"
        self.pid: Final = pid

    def _number(self) -> int | None:
        received = self._channel.recv(fork_server.NUMBER.size, socket.MSG_WAITALL)
        return int(fork_server.NUMBER.unpack(received)[0]) if received else None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while the process runs."""
        with suppress(BlockingIOError):
            return self._wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return the exit code. Raises subprocess.TimeoutExpired."""
        try:
            return self._wait(timeout)
        except TimeoutError:
            raise subprocess.TimeoutExpired("quota-proxy", timeout or 0) from None

    def _wait(self, timeout: float | None) -> int:
        if self._code is None:
            self._channel.settimeout(timeout)
            code = self._number()
            # The kernel kills the forks of a server that ends.
            self._code = -signal.SIGKILL if code is None else code
            self._channel.close()
        return self._code

    def send_signal(self, number: int) -> None:
        """Send a signal if the process runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL if the process runs."""
        self.send_signal(signal.SIGKILL)


class Server:
    """The process whose forks are proxies. It ends with this one."""

    def __init__(self) -> None:
        self._control, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # -P: no file beside the server's takes the place of a module.
        command = [sys.executable, "-P", fork_server.__file__, str(far.fileno())]
        with far:
            self._process = Children().spawn(command, pass_fds=[far.fileno()])
        atexit.register(self.close)

    def close(self) -> None:
        """End the server, with which its forks end."""
        self._control.close()
        self._process.wait()

    def start(self, arguments: Sequence[str], output: IO[bytes]) -> Forked:
        near, far = socket.socketpair()
        request = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
        with far:
            socket.send_fds(self._control, [json.dumps(request).encode()], [output.fileno(), far.fileno()])
        return Forked(near)


_server = cache(Server)


def start(arguments: Sequence[str], output: IO[bytes]) -> Forked:
    """Start `quota-proxy` with these arguments, in the current folder and environment (Linux)."""
    return _server().start(arguments, output)
