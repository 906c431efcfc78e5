import subprocess
import sys
from threading import Thread

import pytest

from proxy.demo.children import Children, reap


def test_a_child_is_the_command_itself() -> None:
    process = Children().spawn(
        [sys.executable, "-c", "import os; print(os.getpid())"], stdout=subprocess.PIPE
    )
    output, _ = process.communicate()
    assert int(output) == process.pid


def test_a_missing_command_is_an_error() -> None:
    process = Children().spawn(["/no/such/command"], stderr=subprocess.DEVNULL)
    assert process.wait(30) != 0


def test_kill_all_ends_every_child_and_closes_its_pipes() -> None:
    children = Children()
    processes = [children.spawn(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(3)]
    children.kill_all()
    for process in processes:
        assert process.returncode == -9
        assert process.stdin is not None
        assert process.stdin.closed


def test_a_child_outlives_the_thread_that_asked_for_it() -> None:
    """The kernel's death signal is sent when the thread that forked ends."""
    children = Children()
    processes: list[subprocess.Popen[str]] = []
    thread = Thread(
        target=lambda: processes.append(
            children.spawn(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
    )
    thread.start()
    thread.join()
    output, _ = processes[0].communicate("still here", timeout=30)
    assert output == "still here"


def test_ctrl_c_does_not_reach_a_child() -> None:
    children = Children()
    process = children.spawn([sys.executable, "-c", "import os; print(os.getpgrp())"], stdout=subprocess.PIPE)
    output, _ = process.communicate()
    assert int(output) == process.pid


def test_input_buffered_for_a_dead_child_is_dropped() -> None:
    process = Children().spawn(["true"], stdin=subprocess.PIPE)
    process.wait(30)
    assert process.stdin is not None
    process.stdin.write("nobody reads this")
    reap(process)
    assert process.stdin.closed


@pytest.mark.parametrize("status", [0, 7])
def test_the_exit_status_is_the_commands(status: int) -> None:
    assert Children().spawn(["sh", "-c", f"exit {status}"]).wait(30) == status
