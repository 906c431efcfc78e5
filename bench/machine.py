"""The machine that the figures were measured on."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

import proxy
from bench.peers.haproxy import HaProxy
from bench.peers.peer import Peer

QUIET_LOAD = 0.5


def facts(peers: list[Peer]) -> dict[str, str]:
    """The machine and versions, by name."""
    found = {
        "cpu": f"{os.cpu_count()} x {_cpu_model()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / (1 << 30):.0f} GiB",
        "kernel": platform.release(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "uvloop": version("uvloop"),
        "quota-proxy": proxy.__version__,
        "load before": f"{os.getloadavg()[0]:.2f}",
    }
    for peer in peers:
        if isinstance(peer, HaProxy):
            found["haproxy"] = peer.version
    return found


def warnings() -> list[str]:
    """Reasons to doubt the figures of this run."""
    load = os.getloadavg()[0]
    if load > QUIET_LOAD:
        return [
            f"the machine's load was {load:.2f} before the run: another process ran; ratios are uncertain"
        ]
    return []


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
