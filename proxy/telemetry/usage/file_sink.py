"""FileSink: writes usage events as lines of JSON to files of limited size, and deletes the oldest files."""

import asyncio
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from proxy.telemetry.usage.events import Encoded
from proxy.telemetry.usage.sink import Sink, SinkUnavailable

log = logging.getLogger(__name__)
PATTERN: Final = "usage-*.jsonl"


class FileSink(Sink):
    """Writes files `usage-TIME-PROXY.jsonl`, whose names sort by time, to a folder."""

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

    async def deliver(self, batch: Sequence[Encoded]) -> None:
        try:
            await asyncio.to_thread(self._write, batch)
        except OSError as error:
            self._file = None
            raise SinkUnavailable(f"cannot write to {self._folder}: {error.strerror or error}") from error

    def _write(self, batch: Sequence[Encoded]) -> None:
        lines: list[bytes] = []
        size = 0
        for event in batch:
            line = event.value + b"\n"
            if self._file is None or self._size + size + len(line) > self._max_bytes:
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
            written = 0
            while written < len(data):
                written += os.write(number, data[written:])
            os.fsync(number)
        except OSError:
            os.ftruncate(number, self._size)
            raise
        finally:
            os.close(number)
        self._size += len(data)

    def _next_file(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        now = time.time_ns() // 1000
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now // 1_000_000))
        self._file = self._folder / f"usage-{stamp}.{now % 1_000_000:06}Z-{self._proxy}.jsonl"
        self._size = 0
        for old in sorted(self._folder.glob(PATTERN))[: -self._keep + 1 or None]:
            log.info("usage events: deleted %s, keeping %d newer files", old, self._keep)
            old.unlink(missing_ok=True)
