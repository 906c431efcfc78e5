"""What a process and its children spent, asked from Linux."""

import time
from pathlib import Path


def tree(pid: int) -> list[int]:
    """The process and all that descend from it, as far as they are still there."""
    pids = [pid]
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in file.read_text().split():
            pids += tree(int(child))
    return pids


def cpu_seconds(pid: int) -> float:
    """User and system time of the process tree in seconds.

    The processes' CPU clocks count what /proc/PID/stat counts, to the nanosecond instead of the clock tick.
    """
    # linux/posix-timers.h: the CPU clock of process p is the id ~p shifted by 3, kind 2 (CPUCLOCK_SCHED).
    return sum(time.clock_gettime((~each << 3) | 2) for each in tree(pid))


def peak_rss_mib(pid: int) -> float:
    """The most resident memory that each process of the tree had so far, added up, in MiB.

    Pages that a parent shares with its children count for each of them.
    """
    kib = 0
    for each in tree(pid):
        for line in Path(f"/proc/{each}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                kib += int(line.split()[1])
    return kib / 1024
