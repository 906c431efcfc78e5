"""Free ports on the loopback address.

They are below the range of the kernel's ephemeral ports (32768 and up on Linux), so no outgoing connection
can take a broker's port while that broker is down.
"""

import random
import socket
from typing import Final

_CANDIDATES: Final = range(12000, 32000)
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Return `count` ports that are not in use; a process gets each port only once."""
    return [free_port_range(1) for _ in range(count)]


def free_port_range(count: int) -> int:
    """Return the first of `count` consecutive ports that are not in use, such as a proxy's port per
    broker.
    """
    choose = random.SystemRandom()
    for _ in range(1000):
        first = choose.choice(_CANDIDATES[:-count])
        ports = range(first, first + count)
        if _given.isdisjoint(ports) and all(_is_free(port) for port in ports):
            _given.update(ports)
            return first
    raise OSError(f"no {count} free consecutive ports between {_CANDIDATES.start} and {_CANDIDATES.stop}")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
