"""Free ports on the loopback address.

They are below the range of the kernel's ephemeral ports (32768 and up on Linux), so no outgoing connection
can take a broker's port while that broker is down. Each process takes its ports from blocks of its own, so
that no other process that uses this module takes a port between its choice and its use.
"""

import atexit
import os
import random
import socket
from typing import Final

_CANDIDATES: Final = range(12000, 32000)
_BLOCK: Final = 200
"""Ports of a block. The first one guards the block, and is never returned."""
_guards: Final[list[socket.socket]] = []
"""A block belongs to the process that has bound its first port, until that process ends."""
_left: Final[list[range]] = []
"""The parts of this process's blocks of which no port has been returned yet."""
os.register_at_fork(after_in_child=_left.clear)


def free_ports(count: int) -> list[int]:
    """Return `count` ports that are not in use; a process gets each port only once. Raises OSError."""
    return [free_port_range(1) for _ in range(count)]


def free_port_range(count: int) -> int:
    """Return the first of `count` consecutive ports that are not in use, such as a proxy's port per broker.

    Raises OSError if there are none.
    """
    while count < _BLOCK:
        for place, ports in enumerate(_left):
            first = _first_free(ports, count)
            if first is not None:
                at = first - ports.start
                _left[place : place + 1] = [part for part in (ports[:at], ports[at + count :]) if part]
                return first
        if not _take_block():
            break
    raise OSError(f"no {count} free consecutive ports between {_CANDIDATES.start} and {_CANDIDATES.stop}")


def _first_free(ports: range, count: int) -> int | None:
    free = 0
    for port in ports:
        free = free + 1 if _is_free(port) else 0
        if free == count:
            return port - count + 1
    return None


def _take_block() -> bool:
    """Take a block that no other process has, if there is one."""
    starts = list(range(_CANDIDATES.start, _CANDIDATES.stop, _BLOCK))
    random.SystemRandom().shuffle(starts)
    for start in starts:
        guard = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            guard.bind(("127.0.0.1", start))
        except OSError:
            guard.close()
            continue
        _guards.append(guard)
        atexit.register(guard.close)
        _left.append(range(start + 1, min(start + _BLOCK, _CANDIDATES.stop)))
        return True
    return False


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
