"""Memory and descriptors of a process now, read from Linux."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

OWN_FILES: Final = 8
SETTLE_SECONDS: Final = 60.0
"""Longer than a broker's side of a connection waits for its broker (LINGER_SECONDS)."""


def resident(pid: int) -> int:
    """The resident memory in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def open_files(pid: int) -> int:
    """How many descriptors the process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def settled(pid: int, files: int) -> int:
    """How many descriptors more than `files` are open once the clients have gone, or after SETTLE_SECONDS.

    OWN_FILES that the process opens for itself, such as its connections to the brokers, do not count.
    """
    until = time.monotonic() + SETTLE_SECONDS
    while (more := open_files(pid) - files - OWN_FILES) > 0 and time.monotonic() < until:
        time.sleep(0.2)
    return max(more, 0)


def growth(samples: Sequence[float]) -> float:
    """How much the mean of the last quarter is above that of the second: the first quarter warms up."""
    quarter = max(len(samples) // 4, 1)
    return fmean(samples[-quarter:]) - fmean(samples[quarter : 2 * quarter] or samples)
