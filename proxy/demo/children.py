"""Children: child processes that end with this process, even if it ends by an exception or by SIGKILL."""

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from proxy.demo import die_with_parent

# The kernel sends the death signal when the *thread* that forked ends, so one permanent thread starts them
# all.
_spawner: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="children")

Stream = int | IO[bytes] | None
"""A standard stream of a child, as subprocess.Popen takes it; None: that of this process."""


class Children:
    """Processes that are killed together."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[str]] = []

    def spawn(
        self,
        command: Sequence[str],
        *,
        stdin: Stream = subprocess.DEVNULL,
        stdout: Stream = None,
        stderr: Stream = None,
        pass_fds: Sequence[int] = (),
    ) -> subprocess.Popen[str]:
        """Start `command` in its own process group, so that Ctrl-C does not reach it directly.

        It inherits the file descriptors `pass_fds` under the same numbers.
        """
        wrapper = [sys.executable, "-I", "-S", str(Path(die_with_parent.__file__)), str(os.getpid())]

        def start() -> subprocess.Popen[str]:
            process = subprocess.Popen(  # noqa: S603 (callers pass programs, not input)
                [*wrapper, *command],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                text=True,
                process_group=0,
                pass_fds=pass_fds,
            )
            self._processes = [*(child for child in self._processes if child.poll() is None), process]
            return process

        return _spawner.submit(start).result()

    def kill_all(self) -> None:
        """Kill all processes and wait for their ends."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            reap(process)


def reap(process: subprocess.Popen[str]) -> None:
    """Kill the process if it still runs, wait for its end, and close its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(BrokenPipeError):  # from flushing its standard input
                pipe.close()
