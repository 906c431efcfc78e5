"""Documents: lines of keys, and what is rejected before anything is read from the file."""

from pathlib import Path

import pytest

from proxy.config.document import read
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
def test_line_of_a_key_or_of_what_is_around_it(file: Path, key: KeyPath, line: int | None) -> None:
    file.write_text(TEXT)
    assert read(file).line(key) == line


def test_value_is_plain_python(file: Path) -> None:
    file.write_text(TEXT)
    assert read(file).value == {
        "cluster": "local",
        "listeners": [{"name": "a", "upstream": {"bootstrap": ["k:9092", "l:9092"]}}, {"name": "b"}],
    }


def test_empty_file_is_nothing(file: Path) -> None:
    file.write_text("# nothing but a comment\n")
    assert read(file).value is None


def test_anchors_work(file: Path) -> None:
    file.write_text("a: &a {b: 1}\nc: {<<: *a, d: 2}\ne: *a\n")
    assert read(file).value == {"a": {"b": 1}, "c": {"b": 1, "d": 2}, "e": {"b": 1}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a: 1\nb: 2\na: 3\n", ":3: a: given twice, first on line 1; keep one of them"),
        (b"a: {b: 1, b: 1}\n", ":1: a.b: given twice, first on line 1; keep one of them"),
        (b"l: [x, {b: 1, 'b': 1}]\n", ":1: l[1].b: given twice, first on line 1; keep one of them"),
        (b"a: 1\nb: [1\n", ":3: is no YAML: "),
        (
            b"a:\n\tb: 1\n",
            ":2: is no YAML: found character that cannot start any token (column 1): there is a tab; YAML",
        ),
        (b"a: b: c\n", ":1: is no YAML: mapping values are not allowed "),
        (b"a: 1\n---\nb: 1\n", ":2: is no YAML: but found another document"),
        (b"a: !!python/name:os.system x\n", ":1: is no YAML: could not determine a constructor for the tag"),
        (b"a: 2024-13-45\n", ": is no YAML: month must be in 1..12"),
        (b"a: \x07\n", ": is no YAML: unacceptable character #x0007"),
        (b"a: \xff\n", ": is not UTF-8 text: invalid start byte at byte 3"),
    ],
)
def test_what_is_no_yaml_is_rejected(file: Path, text: bytes, expected: str) -> None:
    file.write_bytes(text)
    with pytest.raises(SettingsError) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}{expected}")


def test_file_that_cannot_be_read(file: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        read(file)
    assert str(caught.value) == f"{file}: cannot be read: No such file or directory"
    with pytest.raises(SettingsError) as caught:
        read(Path("nowhere.yaml"))
    assert str(caught.value).endswith(f"No such file or directory (looked for in {Path.cwd()})")


def test_file_that_somebody_else_may_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(self: Path, encoding: str) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", reject)
    with pytest.raises(SettingsError, match=r"Permission denied for the user with id \d+, as whom this runs"):
        read(file)
