"""Pauses of the machine, as a process has them that does nothing but sleep.

A virtual machine may stop for some tenths of a second. Nothing flows then, and afterwards clients may send
what their quotas have saved up. A check of a rate allows for the length of the pauses during the seconds that
it looks at, and for nothing else. A proxy that stops or is slow does not make another process pause.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from tests.support.waiting import wait_until

SHORTEST_SECONDS: Final = 0.1
MOST_BYTES: Final = 1 << 20
_WATCH: Final = f"""
import time
before = time.monotonic()
print(before, before, flush=True)
while True:
    time.sleep(0.01)
    now = time.monotonic()
    if now - before > {SHORTEST_SECONDS}:
        print(before, now, flush=True)
    before = now
"""


class Pauses:
    """The pauses during its `with` block."""

    def __init__(self) -> None:
        self._pauses: list[tuple[float, float]] = []

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
        self._pauses = self._read()
        self._output.close()

    def _read(self) -> list[tuple[float, float]]:
        # The process writes at the position of the same open file.
        whole, _, _ = os.pread(self._output.fileno(), MOST_BYTES, 0).rpartition(b"\n")
        return [(float(start), float(end)) for start, end in map(bytes.split, whole.splitlines())]

    @property
    def pid(self) -> int:
        """The process that sleeps."""
        return self._process.pid

    @property
    def seconds(self) -> float:
        """The sum of the pauses so far that took at least SHORTEST_SECONDS."""
        return sum(end - start for start, end in self._found())

    def by_second(
        self, start: float, seconds: int, clock: Callable[[], float] = time.monotonic
    ) -> list[float]:
        """How long the machine paused in the second before `start`, and in each of `seconds` seconds from it.

        What a pause saves up may be sent in the second after it.
        """
        first = start - 1 + time.monotonic() - clock()
        return [
            sum(max(min(end, second + 1) - max(begun, second), 0.0) for begun, end in self._found())
            for second in (first + number for number in range(seconds + 1))
        ]

    def _found(self) -> list[tuple[float, float]]:
        return self._pauses if self._output.closed else self._read()
