"""The process of the command: its exit code, by signals, too, and what it does before it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

RUN = """
import atexit, os, signal, sys, time
from types import SimpleNamespace
def main():
    import logging
    atexit.register(lambda: print("ended", end=""))
    try:
        {}
    finally:
        print("cleaned", end=" ")
sys.modules["pipeline.cli.main"] = SimpleNamespace(main=main)
from pipeline.cli.process import run
run()
print("Python goes on")
"""


def run(line: str, before: Callable[[], object] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN.format(line)]
    # What is printed has to be flushed at the end.
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=buffered, preexec_fn=before
    )


@pytest.mark.parametrize(
    ("line", "exit_code"),
    [("sys.exit()", 0), ("sys.exit(0)", 0), ("sys.exit(2)", 2), ("sys.exit('words')", 1), ("1 / 0", 1)],
)
def test_the_exit_code_is_that_of_the_command(line: str, exit_code: int) -> None:
    done = run(line)
    assert (done.returncode, done.stdout) == (exit_code, "cleaned ended")
    assert ("words" in done.stderr, "ZeroDivisionError" in done.stderr) == ("words" in line, "/" in line)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_command_clean_up(number: signal.Signals) -> None:
    """click ends an interrupted command with exit code 1."""
    line = f"""
        try:
            os.kill(os.getpid(), {number:d})
            time.sleep(60)
        except KeyboardInterrupt:
            sys.exit(1)"""
    # The tests may run in the background of a shell, where SIGINT is ignored.
    done = run(line, lambda: signal.signal(number, signal.SIG_DFL))
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "cleaned ended", "")


def test_a_signal_that_is_ignored_stays_so() -> None:
    """As SIGINT by the background commands of a shell."""
    line = "os.kill(os.getpid(), signal.SIGINT); sys.exit(3)"
    done = run(line, lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert (done.returncode, done.stdout) == (3, "cleaned ended")


def test_the_process_does_not_free_its_objects() -> None:
    line = """
        class Freed:
            def __del__(self): os.write(1, b"freed")
        sys.modules["__main__"].kept = Freed()
        sys.exit(0)"""
    assert run(line).stdout == "cleaned ended"


def test_output_that_nobody_reads_is_an_error_as_always() -> None:
    done = run("os.close(1); sys.exit(0)")
    assert done.returncode == 120
