"""CPU time and memory of a process and its children."""

import subprocess
import sys
import time
from os import getpid

from bench.load.process import cpu_seconds, peak_rss_mib, tree

BURN = "import time\nwhile time.process_time() < 0.2: pass\nprint('done', flush=True)\ninput()"
SAY_OWN = "import time\nwhile True:\n    print(time.process_time(), flush=True)\n    input()"


def test_cpu_seconds_of_a_process_are_what_it_knows_itself() -> None:
    # A process of its own: this one may have children of earlier tests, which count as well.
    child = subprocess.Popen([sys.executable, "-c", SAY_OWN], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        before = float(child.stdout.readline())
        measured = cpu_seconds(child.pid)
        child.stdin.write(b"\n")
        child.stdin.flush()
        after = float(child.stdout.readline())
        child.kill()
    assert 0 < before <= measured <= after


def test_children_count() -> None:
    before = time.process_time()
    child = subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        assert child.pid in tree(getpid())
        assert cpu_seconds(getpid()) - before >= 0.2
        child.communicate(b"\n")


def test_peak_rss_is_in_mib() -> None:
    assert 5 < peak_rss_mib(getpid()) < 4096
