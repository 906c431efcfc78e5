"""The processes of a proxy with several workers, and what they accept. Linux only."""

import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.process.proxy_process import HOST, ProxyProcess

ESTABLISHED = "01"


def started(proxy: ProxyProcess) -> list[int]:
    """The processes of the workers, each as often as one was started."""
    return [int(pid) for pid in re.findall(r"worker \d+: process (\d+)", proxy.log)]


def running(pid: int) -> bool:
    """Whether the process runs."""
    with suppress(OSError):
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


def accepted(pid: int, port: int) -> int:
    """The open connections at this local port that the process has accepted."""
    table = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {
        f"socket:[{row[9]}]" for row in table if row[1].endswith(f":{port:04X}") and row[3] == ESTABLISHED
    }
    count = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            count += os.readlink(descriptor) in sockets
    return count


@contextmanager
def connecting(port: int) -> Iterator[list[OSError]]:
    """Connect again and again; yields the errors."""
    errors: list[OSError] = []
    over = threading.Event()

    def connect() -> None:
        while not over.wait(0.005):
            try:
                socket.create_connection((HOST, port), timeout=30).close()
            except OSError as error:
                errors.append(error)

    thread = threading.Thread(target=connect)
    thread.start()
    try:
        yield errors
    finally:
        over.set()
        thread.join()
