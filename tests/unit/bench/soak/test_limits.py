"""The limit of open files."""

import resource
import subprocess
import sys

SCRIPT = """
import resource
from bench.soak.limits import raise_open_files
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))
raise_open_files()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def test_the_limit_is_raised_as_far_as_it_may() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    said = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
    assert [int(word) for word in said.split()] == [most] * 2
