"""What /proc says of a process, and how samples of it are compared."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bench.soak.process import OWN_FILES, bytecode_kept, cpu_seconds, growth, open_files, resident, settled


def test_this_process() -> None:
    before = open_files(os.getpid())
    with tempfile.TemporaryFile():
        assert open_files(os.getpid()) == before + 1
    assert resident(os.getpid()) > 1 << 20
    assert settled(os.getpid(), before) == 0
    assert abs(cpu_seconds(os.getpid()) - sum(os.times()[:2])) < 0.1


def test_own_files_are_no_leak() -> None:
    assert settled(os.getpid(), open_files(os.getpid()) - OWN_FILES) == 0


def test_the_first_quarter_warms_up() -> None:
    assert growth([0, 10, 20, 20, 21, 21, 20, 22]) == 1.0
    assert growth([5, 5]) == 0.0


def test_processes_keep_their_bytecode_while_the_block_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "module.py").touch()
    command = [sys.executable, "-c", "import module"]
    with bytecode_kept(tmp_path / "bytecode"):
        subprocess.run(command, check=True, cwd=tmp_path / "sources")
    assert list((tmp_path / "bytecode").rglob("module.*.pyc"))
    assert os.environ["PYTHONDONTWRITEBYTECODE"] == "1"
    assert "PYTHONPYCACHEPREFIX" not in os.environ
