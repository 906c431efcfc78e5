"""FileSink: writes usage events as lines of JSON to files of limited size, and deletes the oldest files."""

import asyncio
import fcntl
import logging
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from proxy.telemetry.usage.events import Encoded
from proxy.telemetry.usage.sink import Sink, SinkUnavailable

log = logging.getLogger(__name__)
PATTERN: Final = "usage-*.jsonl"


class FileSink(Sink):
    """Writes files `usage-TIME-PROXY.jsonl`, whose names sort by time, to a folder.

    Several processes may write to one folder. Each locks the file to which it appends: the others do not
    delete it, however old its name is.
    """

    def __init__(self, folder: Path, proxy: str, max_bytes: int, keep: int) -> None:
        """`max_bytes` limits a file, unless a single event is larger. `keep` is the number of files in the
        folder.
        """
        super().__init__("files")
        self._folder: Final = folder
        self._proxy: Final = proxy
        self._max_bytes: Final = max_bytes
        self._keep: Final = keep
        self._file: Path | None = None
        self._size = 0
        self._lock: int | None = None
        """A descriptor of the file, with its lock."""

    async def deliver(self, batch: Sequence[Encoded]) -> None:
        try:
            await asyncio.to_thread(self._write, batch)
        except OSError as error:
            raise SinkUnavailable(f"cannot write to {self._folder}: {error.strerror or error}") from error

    def _write(self, batch: Sequence[Encoded]) -> None:
        """Append the events as lines, and begin further files where one is full. Raises OSError."""
        if self._file is not None and not self._file.exists():
            # It was moved or deleted, perhaps with its folder. A second file of its name could replace it.
            self._file = None
        lines: list[bytes] = []
        size = 0
        for event in batch:
            line = event.value + b"\n"
            if self._file is None or (
                self._size + size > 0 and self._size + size + len(line) > self._max_bytes
            ):
                self._append(lines)
                lines, size = [], 0
                self._next_file()
            lines.append(line)
            size += len(line)
        self._append(lines)

    def _append(self, lines: list[bytes]) -> None:
        """Write whole lines; if the disk is full, truncate the file to the last line before."""
        if not lines:
            return
        assert self._file is not None
        data = b"".join(lines)
        number = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        try:
            before = os.fstat(number).st_size
            try:
                written = 0
                while written < len(data):
                    written += os.write(number, data[written:])
                os.fsync(number)
            except OSError:
                os.ftruncate(number, before)
                if before == 0:
                    self._file.unlink(missing_ok=True)
                raise
        finally:
            os.close(number)
        self._size = before + len(data)
        if before == 0:
            self._lock_file(self._file)
            # Old files are deleted after the write, so that a failed write does not cost an old file.
            self._delete_oldest()

    def _next_file(self) -> None:
        """Name the next file; it is created with its first lines."""
        self._folder.mkdir(parents=True, exist_ok=True)
        now = time.time_ns() // 1000
        name = f"usage-{_stamp(now)}-{self._proxy}.jsonl"
        newest = max((file.name for file in self._folder.glob(PATTERN)), default="")
        if newest >= name:
            # The clock was set back. Files are deleted in the order of their names.
            name = f"usage-{_after(newest)}-{self._proxy}.jsonl"
        self._file = self._folder / name
        self._size = 0

    def _lock_file(self, file: Path) -> None:
        """Keep the file from being deleted by other processes until the next one is written."""
        self._unlock()
        self._lock = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        # Some network file systems have no locks: the file is deleted by its age there.
        with suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    async def release(self) -> None:
        self._unlock()

    def _delete_oldest(self) -> None:
        for old in sorted(self._folder.glob(PATTERN))[: -self._keep]:
            if _is_locked(old):
                continue
            log.info("usage events: deleted %s, keeping %d newer files", old, self._keep)
            old.unlink(missing_ok=True)


def _is_locked(file: Path) -> bool:
    """Whether a process appends to the file."""
    try:
        number = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(number)
    return False


def _stamp(microseconds: int) -> str:
    """A time since the epoch, in the form that file names have."""
    seconds = time.strftime("%Y%m%dT%H%M%S", time.gmtime(microseconds // 1_000_000))
    return f"{seconds}.{microseconds % 1_000_000:06}Z"


def _after(name: str) -> str:
    """The time in the name of a file, and a microsecond; the current time if the name has none."""
    try:
        found = datetime.strptime(name[: len("usage-20240101T000000.000000Z")], "usage-%Y%m%dT%H%M%S.%fZ")
    except ValueError:
        return _stamp(time.time_ns() // 1000)
    return _stamp((found - datetime(1970, 1, 1)) // timedelta(microseconds=1) + 1)
