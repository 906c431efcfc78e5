"""Swaps that are killed at each step, also in file systems where the rename of a folder has many steps."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.storage.filesystem import FilePath
from pipeline.storage.swaps import WHOLE, Swap

Files = dict[str, str]
OLD: Files = {"a/old-1": "old", "a/old-2": "old", "a/same": "old", "b/old": "old", "c/old": "old"}
NEW: Files = {"a/new-1": "new", "a/new-2": "new", "a/same": "new", "d/new-1": "new", "d/new-2": "new"}
MOST_STEPS = 60


class Dead(BaseException):
    """The run is killed."""


def write(folder: Path, files: Files) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def read(folder: Path) -> Files:
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_text() for name, path in found.items() if "/." not in f"/{name}"}


def whole(path: Path, step: Callable[[], None]) -> None:
    """Delete a file or folder, in as many steps as it has files."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            step()
            file.unlink()
    shutil.rmtree(path, ignore_errors=True)


def copy(source: Path, target: Path, step: Callable[[], None], *, by_file: bool) -> None:
    """Rename as an object store does: copy each file, and delete it after that, or after all copies."""
    files = [file for file in sorted(source.rglob("*")) if file.is_file()] if source.is_dir() else [source]
    for file in files:
        step()
        there = target / file.relative_to(source) if source.is_dir() else target
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, there)
        if by_file:
            step()
            file.unlink()
    whole(source, step)


def ends_by_itself(run: Callable[[], None], steps: int, *, by_file: bool) -> bool:
    """Run until the step with this number, from 0; whether there are no more steps."""
    left = steps

    def step() -> None:
        nonlocal left
        if left == 0:
            raise Dead
        left -= 1

    def delete(path: FilePath) -> None:
        if Path(str(path)).exists():
            whole(Path(str(path)), step)

    def move_to(path: FilePath, other: FilePath) -> None:
        assert not Path(str(other)).exists()
        copy(Path(str(path)), Path(str(other)), step, by_file=by_file)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FilePath, "delete", delete)
        patched.setattr(FilePath, "move_to", move_to)
        try:
            run()
        except Dead:
            return False
    return True


@pytest.mark.parametrize("by_file", [True, False])
@pytest.mark.parametrize("is_whole", [True, False])
def test_a_killed_swap_is_completed(
    spark: SparkSession, tmp_path: Path, *, by_file: bool, is_whole: bool
) -> None:
    """Also if the run that completes it is killed. Of the parts, a is new, b stays, c goes, and d comes."""
    after = NEW if is_whole else {**NEW, "b/old": "old"}
    folder, aside = (FilePath(spark, str(tmp_path / "now" / name)) for name in ("table", ".table.new"))
    swap = Swap(folder, aside)

    def run() -> None:
        swap.run([WHOLE] if is_whole else ["a", "d"], [] if is_whole else ["c"])

    seen = []
    for steps in range(MOST_STEPS):
        shutil.rmtree(tmp_path / "now", ignore_errors=True)
        write(tmp_path / "now/table", OLD)
        write(tmp_path / "now/.table.new", NEW)
        ended = ends_by_itself(run, steps, by_file=by_file)
        ends_by_itself(swap.finish, steps % 7, by_file=by_file)
        swap.finish()
        found = read(tmp_path / "now/table")
        assert found in (OLD, after)
        seen.append(found)
        # The note is written aside; the next run's note replaces it.
        assert {path.name for path in (tmp_path / "now").rglob(".*")} <= {"..table.swap.new"}
        if ended:
            break
    assert ended
    assert seen[0] == OLD
    assert seen.index(after) < 3
    assert OLD not in seen[seen.index(after) :]


def test_without_the_files_aside_nothing_is_deleted(spark: SparkSession, tmp_path: Path) -> None:
    folder, aside = (FilePath(spark, str(tmp_path / name)) for name in ("table", ".table.new"))
    write(tmp_path / "table", OLD)
    write(tmp_path / ".table.new", NEW)
    swap = Swap(folder, aside)
    assert not ends_by_itself(lambda: swap.run(["a", "d"], []), 3, by_file=True)
    shutil.rmtree(tmp_path / ".table.new")
    swap.finish()
    assert read(tmp_path / "table") == OLD
