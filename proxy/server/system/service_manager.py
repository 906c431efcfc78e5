"""ServiceManager: tells systemd when the process is ready, reloads and stops (sd_notify(3), Type=notify).

A message is a datagram to the socket that NOTIFY_SOCKET names. Without this variable nothing is sent.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, MutableMapping, Sequence
from typing import Final

log = logging.getLogger(__name__)
START_SECONDS: Final = 5.0
"""How long a start waits for readiness. A cluster that is away must not fail the start: the proxy retries."""
READY_POLL_SECONDS: Final = 0.05
"""How often a start looks whether the process is ready."""
STATUS_SECONDS: Final = 5.0
"""How often the status line is brought up to date."""
SERVING: Final = "serving clients"


class ServiceManager:
    """The service manager that started this process, if it wants to be notified."""

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        """Remove the variable from `environ`, so that no child process speaks for this one."""
        path = environ.pop("NOTIFY_SOCKET", "")
        # A path that begins with @ is in Linux's abstract namespace.
        self._address: Final = "\0" + path[1:] if path.startswith("@") else path
        self._ready = False
        self._status = ""

    async def follow(
        self, problems: Callable[[], Sequence[str]], warnings: Callable[[], Sequence[str]]
    ) -> None:
        """Report the process as ready once `problems` is empty, or after START_SECONDS; then keep the status
        line of `systemctl status` up to date.
        """
        if not self._address:
            return
        latest = asyncio.get_running_loop().time() + START_SECONDS
        while problems() and asyncio.get_running_loop().time() < latest:  # noqa: ASYNC110
            await asyncio.sleep(READY_POLL_SECONDS)
        self._ready = True
        state = ["READY=1"]
        while True:
            status = (*problems(), *warnings(), SERVING)[0]
            if state or status != self._status:
                self._status = status
                self._send(*state, f"STATUS={_one_line(status)}")
            state = []
            await asyncio.sleep(STATUS_SECONDS)

    def reloading(self) -> None:
        """Report that a reload begins; `reloaded` must follow."""
        if self._ready:
            self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def reloaded(self) -> None:
        """Report the end of a reload, also of a rejected one."""
        if self._ready:
            self._send("READY=1")

    def stopping(self) -> None:
        """Report that the shutdown has begun."""
        self._send("STOPPING=1", "STATUS=draining connections")

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            log.warning("cannot notify the service manager (%s): %s", lines[0], error)


def _one_line(status: str) -> str:
    return " ".join(status.split())
