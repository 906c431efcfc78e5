"""The archive of Java's classes never keeps a job from its work."""

import subprocess
from pathlib import Path

import pytest

from pipeline.errors import PipelineError
from pipeline.spark import class_archive
from pipeline.spark.class_archive import find, flags, keep
from proxy.demo.kafka import java


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(class_archive, "FOLDER", tmp_path / "share")
    (tmp_path / "share").mkdir()
    return tmp_path / "share"


def test_a_new_archive_takes_the_place_of_older_ones(folder: Path) -> None:
    for content in (b"old", b"newer"):
        (folder / ".unfinished").write_bytes(content)
        place = keep(folder / ".unfinished")
        assert (find(), place.read_bytes(), list(folder.iterdir())) == (place, content, [place])
    with pytest.raises(PipelineError, match="No such file"):
        keep(folder / ".unfinished")


def test_a_part_of_an_archive_is_not_read(folder: Path) -> None:
    (folder / "classes-7.jsa").write_bytes(b"x" * 6)
    (folder / "classes-x.jsa").touch()
    assert find() is None
    assert flags("") == []


def test_the_user_may_choose_another(folder: Path) -> None:
    (folder / "classes-1.jsa").write_bytes(b"x")
    assert flags("-Da=b")[0] == f"-XX:SharedArchiveFile={folder}/classes-1.jsa"
    for own in ("-XX:SharedArchiveFile=/a.jsa", "-XX:ArchiveClassesAtExit=/a.jsa", "-Xshare:off"):
        assert flags(own) == []


def test_spark_divides_flags_at_spaces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(class_archive, "FOLDER", tmp_path / "a b")
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b/classes-1.jsa").write_bytes(b"x")
    assert flags("") == []


def test_java_ignores_what_is_no_archive(folder: Path) -> None:
    """Also without a word."""
    (folder / "classes-9.jsa").write_bytes(b"no classes"[:9])
    assert flags("")
    command = [str(java.find().executable), *flags(""), "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "cds" not in done.stdout + done.stderr
