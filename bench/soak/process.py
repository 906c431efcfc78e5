"""Memory and descriptors of a process, read from Linux, and the bytecode of processes."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Final

OWN_FILES: Final = 8
"""Descriptors that the process may open for itself during a run."""
SETTLE_SECONDS: Final = 60.0
"""Longer than a broker's side of a connection waits for its broker (LINGER_SECONDS)."""


def resident(pid: int) -> int:
    """The resident memory in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def open_files(pid: int) -> int:
    """How many descriptors the process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def cpu_seconds(pid: int) -> float:
    """The CPU time that the process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settled(pid: int, files: int) -> int:
    """Return how many descriptors more than `files` are open when the clients' are closed, or after
    SETTLE_SECONDS.

    OWN_FILES that the process opens for itself, such as its connections to the brokers, do not count.
    """
    until = time.monotonic() + SETTLE_SECONDS
    while (more := open_files(pid) - files - OWN_FILES) > 0 and time.monotonic() < until:
        time.sleep(0.2)
    return max(more, 0)


def growth(samples: Sequence[float]) -> float:
    """The mean of the last quarter less that of the second quarter. The first quarter is the warm-up."""
    quarter = max(len(samples) // 4, 1)
    return fmean(samples[-quarter:]) - fmean(samples[quarter : 2 * quarter] or samples)


@contextmanager
def bytecode_kept(folder: Path) -> Iterator[None]:
    """Have the processes that the block starts keep the bytecode of their modules in the folder.

    An installed proxy has it beside its modules. Without it, each start compiles the sources.
    """
    wanted = {"PYTHONPYCACHEPREFIX": str(folder), "PYTHONDONTWRITEBYTECODE": None}
    before = {name: os.environ.get(name) for name in wanted}
    _set(wanted)
    try:
        yield
    finally:
        _set(before)


def _set(environment: Mapping[str, str | None]) -> None:
    for name, value in environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
