"""Splice: moves bytes from one socket to another in the kernel, through a pipe (splice(2), Linux only)."""

import contextlib
import errno
import fcntl
import os
from typing import Final, final

PIPE_BYTES: Final = 1 << 20
"""The size of the pipe, and so the most bytes per move. Linux gives every user as much by default."""
LEAST_PIPE_BYTES: Final = 64 << 10
"""A smaller pipe, such as a user with very many pipes gets, is not worth the calls."""
FLAGS: Final = getattr(os, "SPLICE_F_MOVE", 0) | getattr(os, "SPLICE_F_NONBLOCK", 0)
REJECTED: Final = (errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP)
"""The errors of a system that cannot splice such descriptors, or forbids it."""


@final
class Splice:
    """One pipe. It is filled and emptied in the same iteration of the event loop, so all connections share
    it, and a connection that ends leaves no bytes in it.
    """

    __slots__ = ("_empty", "_read", "_tried", "_write", "works")

    def __init__(self) -> None:
        self.works = False
        """Whether the pipe is open and the system has not rejected splicing."""
        self._read = -1
        self._write = -1
        self._tried = False
        self._empty = True

    def open(self) -> None:
        """Create the pipe; later calls do nothing."""
        if self._tried:
            return
        self._tried = True
        if not hasattr(os, "splice"):
            return
        with contextlib.suppress(OSError):
            self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            self.works = True
            fcntl.fcntl(self._write, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        if self.works:
            self.works = fcntl.fcntl(self._write, fcntl.F_GETPIPE_SZ) >= LEAST_PIPE_BYTES

    def opened(self) -> bool:
        """Create the pipe if there is none, and return whether it works."""
        self.open()
        return self.works

    def ready(self) -> bool:
        """Return whether the pipe can be filled; discard bytes that an exception has left in it."""
        if not self._empty:
            self.close()
            self.open()
        return self.works

    def fill(self, head: memoryview, source: int, most: int) -> int:
        """Fill the pipe with `head`, at most LEAST_PIPE_BYTES, and up to `most` bytes of the socket `source`.

        Return the number of bytes from the socket: 0 if it has none now, at its end, and after an error; the
        socket's transport notices the last two itself. Call ready() first.
        """
        self._empty = False
        if len(head) > 0:
            os.write(self._write, head)
        try:
            return os.splice(source, self._write, most, None, None, FLAGS)
        except BlockingIOError:
            return 0
        except OSError as error:
            self._note(error)
            return 0

    def empty_into(self, target: int, size: int) -> bytes:
        """Move the `size` bytes of the pipe to the socket `target`; return those that the socket does not
        accept.
        """
        try:
            moved = -1
            while size > 0 and moved != 0:
                moved = os.splice(self._read, target, size, None, None, FLAGS)
                size -= moved
        except BlockingIOError:
            pass
        except OSError as error:
            self._note(error)
        rest = self._take(size) if size > 0 else b""
        self._empty = True
        return rest

    def close(self) -> None:
        """Close the pipe."""
        if self._write >= 0:
            os.close(self._read)
            os.close(self._write)
            self._read = self._write = -1
        self.works = self._tried = False
        self._empty = True

    def _note(self, error: OSError) -> None:
        if error.errno in REJECTED:
            self.works = False

    def _take(self, size: int) -> bytes:
        taken = os.read(self._read, size)
        while len(taken) < size:
            taken += os.read(self._read, size - len(taken))
        return taken


SPLICE: Final = Splice()
"""Shared by all connections."""
