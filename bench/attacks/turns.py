"""The CPU time of each turn of the proxy's event loop: how long other connections wait while it works.

A library is preloaded into the proxy (`turns.c`, compiled here), and counts the turns by their CPU time.
Other load on the machine hardly changes CPU time, so the figures of different runs are comparable.
"""

import mmap
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("turns.c")
COUNTS: Final = 8192
STEP_MS: Final = 0.05
"""The number of the counts, and the CPU time that each stands for; as in turns.c."""
_BYTES: Final = COUNTS * 8


@dataclass(frozen=True, slots=True)
class TurnTimes:
    """The turns of one attack. Times are upper bounds, in steps of STEP_MS."""

    count: int
    busy_ms: float
    """Half of all CPU time is used in turns of up to this length."""
    p99_ms: float
    tenth_ms: float
    """The tenth longest: other load may prolong single ones."""
    longest_ms: float


def turns(counts: Sequence[int]) -> TurnTimes:
    """Sum up the counts of turns by steps."""
    total = sum(counts)
    used = sum(count * (step + 0.5) for step, count in enumerate(counts))
    longest = max((step for step, count in enumerate(counts) if count), default=-1)
    busy = p99 = tenth = longest
    passed, passed_time = 0, 0.0
    for step, count in enumerate(counts):
        passed += count
        passed_time += count * (step + 0.5)
        if passed_time >= 0.5 * used:
            busy = min(busy, step)
        if passed >= 0.99 * total:
            p99 = min(p99, step)
        if passed > total - 10:
            tenth = min(tenth, step)
    return TurnTimes(total, *(STEP_MS * (step + 1) for step in (busy, p99, tenth, longest)))


class LoopTurns:
    """The counts of one process, which is started in preloaded()."""

    def __init__(self, folder: Path) -> None:
        """Compile the library into `folder`. Needs a C compiler."""
        self._library: Final = folder / "turns.so"
        self._file: Final = folder / "turns.counts"
        command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(self._library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        self._file.write_bytes(bytes(_BYTES))
        with self._file.open("r+b") as opened:
            self._counts: Final = memoryview(mmap.mmap(opened.fileno(), _BYTES)).cast("Q")

    @contextmanager
    def preloaded(self) -> Iterator[None]:
        """Count the turns of a process that is started in the block: start no other one there."""
        os.environ.update(LD_PRELOAD=str(self._library), LOOP_TURNS=str(self._file))
        try:
            yield
        finally:
            del os.environ["LD_PRELOAD"], os.environ["LOOP_TURNS"]

    def read(self) -> list[int]:
        """Return the number of turns until now, by steps."""
        return self._counts.tolist()

    def since(self, before: Sequence[int]) -> TurnTimes:
        """Sum up the turns after an earlier read()."""
        return turns([now - earlier for now, earlier in zip(self.read(), before, strict=True)])
