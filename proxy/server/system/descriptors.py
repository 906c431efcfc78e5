"""File descriptors: how many the process may open, and how many client connections they suffice for."""

import logging
import resource
from typing import Final

log = logging.getLogger(__name__)
OTHER_FILES: Final = 256
"""Descriptors for other uses than clients and brokers: ports, the admin port, libraries, the log."""
FILES_PER_CONNECTION: Final = 2
"""The client's socket and the broker's."""


def allow_connections(wanted: int) -> int:
    """Raise the limit of open files of this process for `wanted` client connections. Returns for how many it
    suffices: `wanted`, or fewer if the hard limit is too low, which is logged.
    """
    files = FILES_PER_CONNECTION * wanted + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = files if hard == resource.RLIM_INFINITY else min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed >= files:
        return wanted
    connections = max((allowed - OTHER_FILES) // FILES_PER_CONNECTION, 1)
    log.warning(
        "the limit of open files is %d, enough for %d connections; limits.max_connections (%d) needs %d: "
        "raise the hard limit (ulimit -Hn, LimitNOFILE) or lower limits.max_connections",
        allowed,
        connections,
        wanted,
        files,
    )
    return connections
