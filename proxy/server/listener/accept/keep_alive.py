"""Has the kernel find out whether the other end of a TCP connection still exists.

A client that is muted, or whose request waits for a debt, is not read from. If its host vanishes meanwhile,
or no longer has the connection, the event loop does not notice: the connection would keep its request, of up
to 1 MiB, for as long as its user has a debt. A broker sets SO_KEEPALIVE, too, with the times of its system.
"""

import socket
from contextlib import suppress
from typing import Final

IDLE_SECONDS: Final = 60
"""Seconds without a segment from the client until the first probe."""
PROBE_SECONDS: Final = 15
"""Seconds between two probes."""
PROBES: Final = 4
"""The connection is broken after so many probes without a reply."""
_TIMES: Final = (("TCP_KEEPIDLE", IDLE_SECONDS), ("TCP_KEEPINTVL", PROBE_SECONDS), ("TCP_KEEPCNT", PROBES))


def keep_alive(client: socket.socket) -> None:
    """Have the kernel probe an accepted connection. One that is broken already is left to its first read."""
    with suppress(OSError):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _TIMES:
            option: int | None = getattr(socket, name, None)  # not every system has all of them
            if option is not None:
                client.setsockopt(socket.IPPROTO_TCP, option, value)
