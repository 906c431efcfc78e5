"""Starting and ending processes."""

import sys
from pathlib import Path

import pytest

from bench.peers.peer import Setting, StartFailed, accepts, free_ports, launch

SERVE = (
    "import socket, sys; s = socket.create_server(('127.0.0.1', int(sys.argv[1])))\nwhile True: s.accept()"
)


def test_a_started_process_serves_and_is_ended(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with launch("one", [sys.executable, "-c", SERVE, str(port)], Setting(1, 0, tmp_path), port) as running:
        assert accepts(port)
        assert running.pid is not None
    assert running.process is not None
    assert running.process.poll() is not None
    assert not accepts(port)


def test_a_process_that_ends_is_reported_with_its_last_words(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    command = [sys.executable, "-c", "import sys; sys.exit('no quorum today')"]
    with pytest.raises(
        StartFailed, match=r"one ended with exit code 1; its output ends with:\nno quorum today"
    ):
        launch("one", command, Setting(1, 0, tmp_path), port)


def test_free_ports_differ() -> None:
    assert len(set(free_ports(20))) == 20
