"""The listening sockets that a service manager passes to the process: systemd's socket activation.

The service manager holds the sockets, so the ports listen while no process serves them: during a restart,
connections wait in the kernel's backlog. The process gets the sockets as the file descriptors from 3 on;
LISTEN_FDS is their number, and LISTEN_PID the process that they are for (sd_listen_fds(3)).
"""

import os
import socket
from collections.abc import MutableMapping
from typing import Final

from proxy.errors import SettingsError
from proxy.upstream.addresses import join_address

FIRST: Final = 3
"""SD_LISTEN_FDS_START: the descriptors before it are standard input, output and error."""
_VARIABLES: Final = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def passed_sockets(
    environ: MutableMapping[str, str] = os.environ, first: int = FIRST
) -> dict[tuple[str, int], socket.socket]:
    """Return the sockets that are passed to this process, by the host and port at which they listen.

    Removes the variables from `environ`, so that no child process takes the sockets for its own. Raises
    SettingsError for a socket that does not listen for TCP connections.
    """
    pid, count = (environ.get(name, "") for name in ("LISTEN_PID", "LISTEN_FDS"))
    for name in _VARIABLES:
        environ.pop(name, None)
    if pid != str(os.getpid()) or not count.isdecimal():
        return {}
    found: dict[tuple[str, int], socket.socket] = {}
    for descriptor in range(first, first + int(count)):
        try:
            passed = socket.socket(fileno=descriptor)
        except OSError as error:
            raise SettingsError(
                f"descriptor {descriptor} of LISTEN_FDS is not a socket: {error.strerror}"
            ) from error
        if not _listens(passed):
            passed.detach()
            raise SettingsError(
                f"descriptor {descriptor} of LISTEN_FDS does not listen for TCP connections; in the socket "
                "unit, use ListenStream with an IP address and Accept=no"
            )
        passed.setblocking(False)
        passed.set_inheritable(False)
        host, port = passed.getsockname()[:2]
        found[host, port] = passed
    return found


def _listens(passed: socket.socket) -> bool:
    tcp = passed.family in (socket.AF_INET, socket.AF_INET6) and passed.type == socket.SOCK_STREAM
    return tcp and bool(passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def unused(host: str, port: int) -> SettingsError:
    """The error for a passed socket that no listener of the file serves: its clients would wait for ever."""
    return SettingsError(
        f"the service manager listens at {join_address(host, port)}, which no listener of this file serves; "
        "remove ListenStream from the socket unit, or set a listener's bind and ports to it"
    )
