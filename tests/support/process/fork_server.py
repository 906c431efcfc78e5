"""Starts `quota-proxy run` as forks: `fork_server.py DESCRIPTOR` (Linux).

Most of a start is the import of modules, which this process has imported. The descriptor is that of a socket
that brings requests: JSON with the arguments, the folder and the environment, the descriptor of the output,
and that of a socket for the process id and, at the end, the exit code.
"""

import ctypes
import json
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from typing import Any, Final

from proxy.cli.libraries import import_kio
from proxy.cli.main import main
from proxy.server.admin_port.libraries import import_http_server
from proxy.server.system.garbage_collection import gc_paused

NUMBER: Final = struct.Struct("=i")
REQUEST_BYTES: Final = 100_000
_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_FIRST_OWN: Final = 3
"""Descriptors below are the standard streams."""


def _import() -> None:
    """Import what a proxy imports until it serves its admin port."""
    with gc_paused():
        import_kio()
        import_http_server()
        import proxy.cli.serve
        import proxy.server.admin_port.site
        import proxy.server.app
        import proxy.store.quota_topic
        import proxy.store.sharing.shares_topic  # noqa: F401


class _Server:
    def __init__(self, control: socket.socket) -> None:
        self._control: Final = control
        self._running: Final[dict[int, tuple[int, int]]] = {}
        """By descriptor of a process: its id, and the descriptor of the socket that gets its exit code."""
        # A fork would share an epoll with this process.
        self._poll: Final = select.poll()
        self._poll.register(control, select.POLLIN)
        self._libc: Final = ctypes.CDLL(None)
        self._pid: Final = os.getpid()

    def serve(self) -> Sequence[str] | None:
        """Serve until the control socket ends. Returns the arguments in each fork."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._running:
                    self._report_end(descriptor)
                    continue
                message, descriptors, _, _ = socket.recv_fds(self._control, REQUEST_BYTES, 2)
                if not message:
                    return None
                request = json.loads(message)
                if self._fork(*descriptors):
                    self._become(request, descriptors[0])
                    return list(request["arguments"])

    def _fork(self, output: int, channel: int) -> bool:
        """Start a process. Returns True in it."""
        pid = os.fork()
        if pid == 0:
            return True
        os.close(output)
        os.write(channel, NUMBER.pack(pid))
        process = os.pidfd_open(pid)
        self._running[process] = pid, channel
        self._poll.register(process, select.POLLIN)
        return False

    def _report_end(self, process: int) -> None:
        pid, channel = self._running.pop(process)
        self._poll.unregister(process)
        os.close(process)
        _, status = os.waitpid(pid, 0)
        os.write(channel, NUMBER.pack(os.waitstatus_to_exitcode(status)))
        os.close(channel)

    def _become(self, request: dict[str, Any], output: int) -> None:
        """Be as the program would be at its start."""
        self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self._pid:  # it ended before the line above
            os._exit(1)
        os.setpgid(0, 0)
        for stream in (1, 2):
            os.dup2(output, stream)
        self._control.detach()
        os.closerange(_FIRST_OWN, os.sysconf("SC_OPEN_MAX"))
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])


def _serve(descriptor: int) -> None:
    _import()
    arguments = _Server(socket.socket(fileno=descriptor)).serve()
    if arguments is not None:
        sys.argv = ["quota-proxy", *arguments]
        main()


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
