"""YAML documents: lines of keys, and what is rejected while parsing."""

import os
from pathlib import Path
from typing import BinaryIO

import pytest

from proxy.bounded_yaml import OutOfBounds
from proxy.config.yaml.document import read
from proxy.errors import KeyPath, SettingsError

TEXT = """\
cluster: local
listeners:
  - name: a
    upstream:
      bootstrap: [k:9092,
        l:9092]
  - {name: b}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "proxy.yaml"


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ((), None),
        (("cluster",), 1),
        (("listeners",), 2),
        (("listeners", 0), 3),
        (("listeners", 0, "upstream", "bootstrap"), 5),
        (("listeners", 0, "upstream", "bootstrap", 1), 6),
        (("listeners", 1, "name"), 7),
        (("listeners", 1, "missing", "below"), 7),
        (("listeners", 5), 2),
        (("missing",), None),
    ],
)
def test_line_of_a_key_or_its_closest_parent(file: Path, key: KeyPath, line: int | None) -> None:
    file.write_text(TEXT)
    assert read(file).line(key) == line


def test_value_is_plain_python(file: Path) -> None:
    file.write_text(TEXT)
    assert read(file).value == {
        "cluster": "local",
        "listeners": [{"name": "a", "upstream": {"bootstrap": ["k:9092", "l:9092"]}}, {"name": "b"}],
    }


def test_empty_file_has_no_value(file: Path) -> None:
    file.write_text("# nothing but a comment\n")
    assert read(file).value is None


def test_anchors_and_merge_keys_are_resolved(file: Path) -> None:
    file.write_text("a: &a {b: 1}\nc: {<<: *a, d: 2}\ne: *a\n")
    assert read(file).value == {"a": {"b": 1}, "c": {"b": 1, "d": 2}, "e": {"b": 1}}


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        (b"a: 1\nb: 2\na: 3\n", 3, ("a",)),
        (b"a: {b: 1, b: 1}\n", 1, ("a", "b")),
        (b"l: [x, {b: 1, 'b': 1}]\n", 1, ("l", 1, "b")),
        (b"a: 1\nb: [1\n", 3, ()),
        (b"a:\n\tb: 1\n", 2, ()),
        (b"a: b: c\n", 1, ()),
        (b"a: 1\n---\nb: 1\n", 2, ()),
        (b"a: !!python/name:os.system x\n", 1, ()),
        (b"a: 2024-13-45\n", None, ()),
        (b"a: \x07\n", None, ()),
        (b"a: \xff\n", None, ()),
    ],
)
def test_duplicate_key_or_invalid_yaml_is_rejected(
    file: Path, text: bytes, line: int | None, key: KeyPath
) -> None:
    file.write_bytes(text)
    with pytest.raises(SettingsError) as caught:
        read(file)
    assert (caught.value.file, caught.value.line, caught.value.key) == (file, line, key)


def test_duplicate_key_names_the_first(file: Path) -> None:
    file.write_text("a: 1\nb: 2\na: 3\n")
    with pytest.raises(SettingsError, match=r"line 1\b"):
        read(file)


def test_tab_is_explained(file: Path) -> None:
    file.write_text("a:\n\tb: 1\n")
    with pytest.raises(SettingsError, match="tab") as caught:
        read(file)
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a:\n  b: " + "[" * 100_000, 2),
        ("a: &a\n  - *a\n", 2),
        ("a:\n  - 0x" + "f" * 5000 + "\n", 2),
    ],
)
def test_a_file_out_of_bounds(file: Path, text: str, line: int) -> None:
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        read(file)
    assert (caught.value.file, caught.value.line) == (file, line)
    assert isinstance(caught.value.__cause__, OutOfBounds)


def test_a_second_document_is_named(file: Path) -> None:
    file.write_text("a: 1\n---\nb: 2\n")
    with pytest.raises(SettingsError, match="expected a single document"):
        read(file)


def test_missing_file(file: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        read(file)
    assert caught.value.file == file
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    with pytest.raises(SettingsError, match=str(Path.cwd())):
        read(Path("nowhere.yaml"))


def test_unreadable_file_names_the_user_of_the_process(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(self: Path, mode: str) -> BinaryIO:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", reject)
    with pytest.raises(SettingsError, match=rf"\b{os.geteuid()}\b"):
        read(file)
