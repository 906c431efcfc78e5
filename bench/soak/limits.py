"""The limit of open files of this process, which its child processes inherit."""

import resource


def raise_open_files() -> int:
    """Raise the limit to the hard limit; return it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most
