"""Becomes a program that the kernel kills when its parent dies: `die_with_parent.py PARENT_PID COMMAND...`

A wrapper and not `Popen(preexec_fn=...)`, which runs Python in a forked child and can deadlock where there
are threads. To the kernel, the parent is a *thread*: `children` starts everything from one that stays.
Where there is no prctl (not Linux), the command simply runs.
"""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h; outlives execve


def main(parent: int, command: list[str]) -> None:
    """Replaces this process by `command`, unless the parent is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 (a program of our own choice, and no shell)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
