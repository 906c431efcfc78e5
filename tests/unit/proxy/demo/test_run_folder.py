import subprocess
import sys
from pathlib import Path

import pytest

from proxy.demo.run_folder import RunFolder, remove_abandoned

_OWNER = """
import sys
from proxy.demo.run_folder import RunFolder
folder = RunFolder()
folder.create()
(folder.path / "data").touch()
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_a_folder_that_is_removed_leaves_nothing(tmp_path: Path) -> None:
    folder = RunFolder()
    assert list(tmp_path.iterdir()) == []
    folder.create()
    (folder.path / "data").touch()
    folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_kept_stays(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.create()
    folder.keep()
    remove_abandoned()
    assert list(tmp_path.iterdir()) == [folder.path]


def test_a_folder_in_use_is_left_alone() -> None:
    folder = RunFolder()
    folder.create()
    remove_abandoned()
    assert folder.path.exists()
    folder.remove()


def test_the_folder_of_a_killed_run_is_removed_by_the_next(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        abandoned = Path(owner.stdout.readline().strip())
        remove_abandoned()
        assert (abandoned / "data").exists()
        owner.kill()
    folder = RunFolder()
    folder.create()
    assert not abandoned.exists()
    folder.remove()
    assert list(tmp_path.iterdir()) == []
