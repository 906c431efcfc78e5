"""file_state(): tells versions of the configuration file apart."""

from pathlib import Path

FileState = tuple[int, ...] | None
"""Differs between any two versions of a file; None: the file does not exist."""


def file_state(path: Path) -> FileState:
    """The state of the file that `path` links to: Kubernetes updates a mounted file by replacing a link."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size
