"""The memory of a job: that of its process, and of all that it has started."""

import os
import subprocess
import sys

from bench.pipeline.job import _below, _peak
from tests.support.waiting import wait_until

STARTS_ANOTHER = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "input()"])
print(child.pid, flush=True)
child.wait()
"""


def test_descendants_of_a_process() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_ANOTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        grandchild = int(process.stdout.readline())
        wait_until(lambda: _peak(grandchild) > 1, "the memory of an interpreter")
        assert _below(process.pid) == [process.pid, grandchild]
        assert {process.pid, grandchild} < set(_below(os.getpid()))
        process.communicate("\n")
    assert _peak(grandchild) == 0.0


def test_a_peak_is_in_megabytes() -> None:
    assert 10 < _peak(os.getpid()) < 100_000
