import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.attacks.turns import COUNTS, SOURCE, STEP_MS, LoopTurns, TurnTimes, turns

BUSY_MS = 20
WORK = f"""
import asyncio, time
def work():
    end = time.thread_time() + {BUSY_MS / 1000}
    while time.thread_time() < end:
        pass
async def main():
    for _ in range(5):
        await asyncio.sleep(0.001)
    work()
asyncio.run(main())
"""


def test_the_constants_are_those_of_the_library() -> None:
    source = SOURCE.read_text()
    assert f"#define COUNTS {COUNTS}\n" in source
    assert f"#define STEP_NS {round(STEP_MS * 1e6)}\n" in source


def test_sums() -> None:
    counts = [0] * COUNTS
    counts[0], counts[9], counts[99] = 980, 12, 8
    found = turns(counts)
    # 980 turns take 24.5 ms in all, 12 take 5.7 ms, and 8 take 39.8 ms.
    times: Any = [pytest.approx(each) for each in (5.0, 0.5, 0.5, 5.0)]
    assert found == TurnTimes(1000, *times)


def test_no_turn() -> None:
    assert turns([0] * COUNTS) == TurnTimes(0, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.skipif(sys.platform != "linux", reason="it counts the calls of epoll")
def test_a_process_of_its_own(tmp_path: Path) -> None:
    counted = LoopTurns(tmp_path)
    before = counted.read()
    with counted.preloaded():
        process = subprocess.Popen([sys.executable, "-c", WORK])
    assert process.wait(60) == 0
    found = counted.since(before)
    assert found.count > 5
    assert found.longest_ms > BUSY_MS
    assert found.tenth_ms < found.longest_ms
