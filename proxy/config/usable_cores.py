"""The number of cores that this process may use."""

import os


def usable_cores() -> int:
    """As many as the process may run on; all of the machine where the system does not tell."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
