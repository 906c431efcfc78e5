"""CPU and memory of a process and its children, read from Linux."""

import time
from pathlib import Path


def tree(pid: int) -> list[int]:
    """The process and its living descendants."""
    pids = [pid]
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in file.read_text().split():
            pids += tree(int(child))
    return pids


def cpu_seconds(pid: int) -> float:
    """User and system time of the process tree in seconds.

    CPU clocks have the figures of /proc/PID/stat in nanoseconds instead of clock ticks.
    """
    # linux/posix-timers.h: the CPU clock of process p is the id ~p shifted by 3, kind 2 (CPUCLOCK_SCHED).
    return sum(time.clock_gettime((~each << 3) | 2) for each in tree(pid))


def peak_rss_mib(pid: int) -> float:
    """The sum of the peak resident memory of each process of the tree, in MiB.

    Pages that processes share are counted once for each.
    """
    kib = 0
    for each in tree(pid):
        for line in Path(f"/proc/{each}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                kib += int(line.split()[1])
    return kib / 1024
