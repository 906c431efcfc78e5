"""CPU time and memory of a process and its children."""

import subprocess
import sys
import time
from os import getpid

import pytest

from bench.load.process import cpu_seconds, peak_rss_mib, tree

BURN = "import time\nwhile time.process_time() < 0.2: pass\nprint('done', flush=True)\ninput()"


def test_cpu_seconds_of_this_process_are_what_it_knows_itself() -> None:
    assert cpu_seconds(getpid()) == pytest.approx(time.process_time(), abs=0.05)


def test_children_count() -> None:
    before = cpu_seconds(getpid())
    child = subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        assert child.pid in tree(getpid())
        assert cpu_seconds(getpid()) - before >= 0.2
        child.communicate(b"\n")


def test_peak_rss_is_in_mib() -> None:
    assert 5 < peak_rss_mib(getpid()) < 4096
