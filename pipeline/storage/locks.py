"""Locks of tables: two runs on one machine, or on a network file system with locks, do not write the same
table at the same time.
"""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from pipeline.errors import PipelineError
from pipeline.storage.sources import local_path


@contextmanager
def locked(out: str, name: str, *, wait: bool = False) -> Iterator[None]:
    """Keep other runs from writing the table `name` in the folder `out`. Raises PipelineError if another run
    writes it, or waits for its end.

    The system removes the lock when the process ends, also if it is killed. There is no lock in a file system
    that has none, such as HDFS or an object store.
    """
    folder = local_path(out)
    with ExitStack() as stack:
        if "://" not in folder:
            # No lock where the system has none, or in a folder of another user, as the write will say.
            with suppress(OSError):
                file = stack.enter_context(Path(folder, f".{name}.lock").open("a"))
                _lock(file, f"{folder}/{name}", wait=wait)
        yield


def _lock(file: IO[str], table: str, *, wait: bool) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PipelineError(f"another run writes {table}; repeat this run when the other has ended") from None
