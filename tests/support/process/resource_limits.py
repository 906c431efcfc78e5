"""Lower limits of this process, so that the system itself lets a call fail."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let no file grow beyond this size in bytes, as on a full disk; errno is EFBIG. Print nothing inside."""
    with _limited(resource.RLIMIT_FSIZE, size):
        yield


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Let whatever needs another file descriptor fail with errno EMFILE."""
    with _limited(resource.RLIMIT_NOFILE, 0):
        yield


@contextmanager
def _limited(which: int, soft: int) -> Iterator[None]:
    before, hard = resource.getrlimit(which)
    resource.setrlimit(which, (soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(which, (before, hard))
