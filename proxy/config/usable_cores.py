"""The number of cores that this process may use."""

import os


def usable_cores() -> int:
    """The cores on which the process may run; all of the machine's if the system does not tell."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
