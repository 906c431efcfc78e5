"""Runs a program that the kernel kills when its parent ends: `die_with_parent.py PARENT_PID COMMAND...`

`Popen(preexec_fn=...)` would need no wrapper, but runs Python in a forked child, which can deadlock if there
are threads. For the kernel, the parent is a *thread*, so `children` starts everything from a permanent one.
Without prctl (not on Linux), the command runs unprotected.
"""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h; outlives execve


def main(parent: int, command: list[str]) -> None:
    """Replace this process with `command`, unless the parent has already ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the line above
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 (a program of our own choice, and no shell)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
