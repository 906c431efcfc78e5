"""What /proc says of a process, and how samples of it are compared."""

import os
import tempfile

from bench.soak.process import OWN_FILES, growth, open_files, resident, settled


def test_this_process() -> None:
    before = open_files(os.getpid())
    with tempfile.TemporaryFile():
        assert open_files(os.getpid()) == before + 1
    assert resident(os.getpid()) > 1 << 20
    assert settled(os.getpid(), before) == 0


def test_own_files_are_no_leak() -> None:
    assert settled(os.getpid(), open_files(os.getpid()) - OWN_FILES) == 0


def test_the_first_quarter_warms_up() -> None:
    assert growth([0, 10, 20, 20, 21, 21, 20, 22]) == 1.0
    assert growth([5, 5]) == 0.0
