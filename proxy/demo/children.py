"""Child processes that never outlive this one, however it ends: normally, by an exception, by SIGKILL."""

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from proxy.demo import die_with_parent

# The kernel's death signal comes when the *thread* that forked ends: one thread that stays starts them all.
_spawner: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="children")

Stream = int | IO[bytes] | None


class Children:
    """A family of processes that can be ended together."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[str]] = []

    def spawn(
        self,
        command: Sequence[str],
        *,
        stdin: Stream = subprocess.DEVNULL,
        stdout: Stream = None,
        stderr: Stream = None,
    ) -> subprocess.Popen[str]:
        """Starts `command` in a process group of its own, so that Ctrl-C reaches it only through us."""
        wrapper = [sys.executable, "-I", "-S", str(Path(die_with_parent.__file__)), str(os.getpid())]

        def start() -> subprocess.Popen[str]:
            process = subprocess.Popen(  # noqa: S603 (callers pass programs, not input)
                [*wrapper, *command], stdin=stdin, stdout=stdout, stderr=stderr, text=True, process_group=0
            )
            self._processes = [*(child for child in self._processes if child.poll() is None), process]
            return process

        return _spawner.submit(start).result()

    def kill_all(self) -> None:
        """Ends every process at once and waits until each is gone; for those whose work is thrown away."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            reap(process)


def reap(process: subprocess.Popen[str]) -> None:
    """Kills the process if it still runs, and gives up all that is held for it."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(BrokenPipeError):  # what is still buffered for its standard input
                pipe.close()
