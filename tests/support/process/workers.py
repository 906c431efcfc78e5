"""The processes of a proxy with several workers."""

import re
from contextlib import suppress
from pathlib import Path

from tests.support.process.proxy_process import ProxyProcess


def started(proxy: ProxyProcess) -> list[int]:
    """The processes of the workers, each as often as one was started."""
    return [int(pid) for pid in re.findall(r"worker \d+: process (\d+)", proxy.log)]


def running(pid: int) -> bool:
    """Whether the process runs."""
    with suppress(OSError):
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False
