"""Splice: bytes from one socket to another through a pipe of the system's, without a copy of them here.

Only Linux has it (splice(2)), and only for bytes that nobody has to see.
"""

import contextlib
import errno
import fcntl
import os
from typing import Final, final

PIPE_BYTES: Final = 1 << 20
"""The size of the pipe, and so what is moved at a time: the most that Linux gives every user by default."""
LEAST_PIPE_BYTES: Final = 64 << 10
"""A smaller one, as a user with very many pipes gets it, is not worth the calls."""
MAX_HEAD_BYTES: Final = LEAST_PIPE_BYTES
FLAGS: Final = getattr(os, "SPLICE_F_MOVE", 0) | getattr(os, "SPLICE_F_NONBLOCK", 0)
REJECTED: Final = (errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP)
"""What a system says that does not splice such descriptors, or forbids it."""


@final
class Splice:
    """One pipe. Whoever fills it empties it in the same turn of the loop, so that all connections can share
    it and nothing stays in it when one of them ends.
    """

    __slots__ = ("_empty", "_read", "_tried", "_write", "works")

    def __init__(self) -> None:
        self.works = False
        """Whether it can be used: open(), and the system has not rejected it since."""
        self._read = -1
        self._write = -1
        self._tried = False
        self._empty = True

    def open(self) -> None:
        """Make the pipe, the first time."""
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

    def ready(self) -> bool:
        """Whether it can be filled. Bytes that an exception has left in it are discarded."""
        if not self._empty:
            self.close()
            self.open()
        return self.works

    def fill(self, head: memoryview, source: int, most: int) -> int:
        """Take `head`, at most MAX_HEAD_BYTES, and behind it up to `most` bytes that the socket `source` has.

        How many those were: 0 where it has none now, at its end, and on an error, all of which the socket's
        transport finds out by itself. Only when it is ready().
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
        """Hand the `size` bytes that are in the pipe to the socket `target`; returns those that it has not
        taken.
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
        """Give the pipe back."""
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
