"""Counts the CPU time of all processes of a command: `python -m bench.pipeline.counted COMMAND...`.

Linux gives this process those of the command's processes whose parents end before them, such as Spark's
workers in Python. The last line of the output is JSON, and the exit code is the command's.
"""

import ctypes
import json
import os
import resource
import subprocess
import sys
from contextlib import suppress
from typing import Final

_PR_SET_CHILD_SUBREAPER: Final = 36


def main() -> None:
    """Run the command, and wait until all its processes have ended."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    code = subprocess.run(sys.argv[1:], check=False).returncode
    with suppress(ChildProcessError):
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"cpu_seconds": used.ru_utime + used.ru_stime}))
    sys.exit(code)


if __name__ == "__main__":
    main()
