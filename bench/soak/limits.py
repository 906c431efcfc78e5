"""The limit of open files of this process, which its child processes inherit."""

import resource


def raise_open_files() -> None:
    """Raise the limit to the hard limit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
