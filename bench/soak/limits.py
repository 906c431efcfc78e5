"""The limit of open files of this process, which the processes that it starts inherit."""

import resource


def raise_open_files() -> int:
    """Raise the limit to the hard limit; returns it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most
