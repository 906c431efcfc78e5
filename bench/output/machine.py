"""The machine that the figures were measured on."""

import os
import platform
import resource
import time
from importlib.metadata import version
from pathlib import Path

import proxy
from bench.peers.haproxy import HaProxy
from bench.peers.peer import Peer

QUIET_LOAD = 0.5
"""The load average of one minute before a run, above which its figures are in doubt."""
QUIET_SHARE = 0.05
"""The part of the machine's CPU time that other processes may take during a run."""


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


def await_quiet(seconds: float = 180.0) -> None:
    """Wait until the load is low enough, for `seconds` at most: the load average still has what compiled the
    rings before.
    """
    deadline = time.monotonic() + seconds
    while os.getloadavg()[0] > QUIET_LOAD and time.monotonic() < deadline:
        time.sleep(1.0)


def warnings() -> list[str]:
    """Reasons to doubt the figures of this run."""
    load = os.getloadavg()[0]
    if load > QUIET_LOAD:
        return [
            f"the machine's load was {load:.2f} before the run: another process ran; ratios are uncertain"
        ]
    return []


class Others:
    """The CPU time of other processes, from the creation of the object on."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._busy = _busy_seconds() - _own_seconds()

    def share(self) -> float:
        """The part of the machine that they took. The processes that this one has started have ended."""
        busy = _busy_seconds() - _own_seconds() - self._busy
        return max(busy, 0.0) / max(time.monotonic() - self._began, 0.1) / (os.cpu_count() or 1)

    def doubts(self) -> list[str]:
        """Reasons to doubt the figures of the run."""
        share = self.share()
        if share > QUIET_SHARE:
            return [f"other processes took {share:.0%} of the machine during the run; ratios are uncertain"]
        return []


def _busy_seconds() -> float:
    """The seconds that all processors have worked, since the machine started."""
    ticks = [int(each) for each in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    user, nice, system, _idle, _waiting, irq, softirq, stolen = ticks
    return (user + nice + system + irq + softirq + stolen) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    """The same of this process, and of those that it has started and awaited."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
