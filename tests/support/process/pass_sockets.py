"""Passes sockets to a program, as systemd does: `pass_sockets.py DESCRIPTOR,... COMMAND...`

The program gets the inherited descriptors as those from 3 on, and has this process's number: LISTEN_PID
names it.
"""

import fcntl
import os
import sys
from typing import Final

FIRST: Final = 3
_BEYOND: Final = 1000
"""Above every descriptor that is passed."""


def main(descriptors: list[int], command: list[str]) -> None:
    """Replace this process with `command`."""
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, _BEYOND) for each in descriptors]
    for place, each in enumerate(moved):
        os.dup2(each, FIRST + place, inheritable=True)
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(moved)))
    os.execv(command[0], command)


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1].split(",")], sys.argv[2:])
