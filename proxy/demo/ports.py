"""Free ports on the loopback address.

They come from below the range that the kernel gives to outgoing connections (32768 and up on Linux): no
client's own socket can sit on a broker's port while that broker is down.
"""

import random
import socket
from typing import Final

_CANDIDATES: Final = range(12000, 32000)
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """`count` ports that nothing listens at; none is given out twice in one process."""
    return [free_port_range(1) for _ in range(count)]


def free_port_range(count: int) -> int:
    """The first of `count` consecutive ports that nothing listens at, such as a proxy's port per broker."""
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
