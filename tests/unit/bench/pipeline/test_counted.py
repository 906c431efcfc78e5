"""The CPU time of a command is that of all its processes."""

import json
import subprocess
import sys

BURNS = "import time\nwhile time.process_time() < 0.3: pass\nprint('burnt', flush=True)"
LEAVES_A_PROCESS = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {BURNS!r}])
sys.exit(3)
"""


def test_a_process_that_outlives_its_parent_is_counted() -> None:
    command = [sys.executable, "-m", "bench.pipeline.counted", sys.executable, "-c", LEAVES_A_PROCESS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    *_, burnt, last = done.stdout.splitlines()
    assert burnt == "burnt"
    assert json.loads(last)["cpu_seconds"] > 0.3
