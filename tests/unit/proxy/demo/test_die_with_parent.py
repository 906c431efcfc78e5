import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.demo import die_with_parent
from tests.support.waiting import wait_until

_PARENT = """
import subprocess, sys
from proxy.demo.children import Children
child = Children().spawn(["sleep", "600"], stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_child_ends_with_its_killed_parent() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        stat = Path(f"/proc/{int(parent.stdout.readline())}/stat")
        wait_until(lambda: "(sleep)" in stat.read_text(), "the wrapper becomes the command")
        os.kill(parent.pid, signal.SIGKILL)
        # A zombie, where nobody takes over orphans, is as dead as one whose entry is gone.
        wait_until(lambda: not stat.exists() or ") Z " in stat.read_text(), "the child ends")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_without_a_parent_no_child_is_started() -> None:
    script = str(Path(die_with_parent.__file__))
    nobody = subprocess.run([sys.executable, script, "1", "echo", "alive"], capture_output=True, check=False)
    assert nobody.returncode == 1
    assert nobody.stdout == b""
    ours = [sys.executable, script, str(os.getpid()), "echo", "alive"]
    assert subprocess.run(ours, capture_output=True, check=False).stdout == b"alive\n"
