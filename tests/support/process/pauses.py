"""Pauses of the machine, as a process has them that does nothing but sleep.

A virtual machine may stop for some tenths of a second. Nothing flows then, and afterwards clients may send
what their quotas have saved up. A check of a rate allows for the length of the pauses, and for nothing else.
"""

import os
import subprocess
import sys
import tempfile
from types import TracebackType
from typing import Final, Self

from tests.support.waiting import wait_until

SHORTEST_SECONDS: Final = 0.1
MOST_BYTES: Final = 1 << 20
_WATCH: Final = f"""
import time
print(0.0, flush=True)
before = time.monotonic()
while True:
    time.sleep(0.01)
    now = time.monotonic()
    if now - before > {SHORTEST_SECONDS}:
        print(now - before, flush=True)
    before = now
"""


class Pauses:
    """The pauses during its `with` block."""

    def __init__(self) -> None:
        self._lengths: list[float] = []

    def __enter__(self) -> Self:
        self._output = tempfile.TemporaryFile()
        self._process = subprocess.Popen([sys.executable, "-ISc", _WATCH], stdout=self._output)
        wait_until(self._read, "the process that sleeps")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._lengths = self._read()
        self._output.close()

    def _read(self) -> list[float]:
        # The process writes at the position of the same open file.
        return [float(line) for line in os.pread(self._output.fileno(), MOST_BYTES, 0).split()]

    @property
    def pid(self) -> int:
        """The process that sleeps."""
        return self._process.pid

    @property
    def seconds(self) -> float:
        """The sum of the pauses so far that took at least SHORTEST_SECONDS."""
        return sum(self._lengths if self._output.closed else self._read())
