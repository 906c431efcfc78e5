"""Documents: each error names the file, and the key where there is one."""

from pathlib import Path

import pytest
from msgspec import Struct

from pipeline.errors import InputError
from pipeline.inputs.documents import convert, read_yaml


class Sizes(Struct):
    sizes: dict[str, int]


@pytest.mark.parametrize("text", [b"\xff", b"{a: [", b"a: 1\n---\nb: 2", b"[" * 100_000])
def test_what_is_no_document(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "it.yaml"
    file.write_bytes(text)
    with pytest.raises(InputError, match=r"it\.yaml"):
        read_yaml(file)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.yaml"):
        with pytest.raises(InputError, match=str(path)):
            read_yaml(path)


def test_a_json_file_is_yaml(tmp_path: Path) -> None:
    file = tmp_path / "it.json"
    file.write_text('{"sizes": {"a": 1}}')
    assert convert(read_yaml(file), Sizes, file) == Sizes({"a": 1})


@pytest.mark.parametrize("text", ["{a: {b: 1, b: 2}}", "\ufeffx: 1\r\na:\r\n  b: 1\r\n  b: 1\r\n"])
def test_a_key_that_occurs_twice_is_named(tmp_path: Path, text: str) -> None:
    """YAML's last value would silently count: another price, another quota, another team that pays."""
    file = tmp_path / "it.yaml"
    file.write_text(text, newline="")
    with pytest.raises(InputError, match=r"it\.yaml:\d: a\.b: .*line \d"):
        read_yaml(file)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """As editors on Windows write it, with their ends of lines."""
    file = tmp_path / "it.yaml"
    file.write_bytes(b"\xef\xbb\xbfsizes:\r\n  a: 1\r\n")
    assert convert(read_yaml(file), Sizes, file) == Sizes({"a": 1})


def test_a_value_of_another_type_has_its_key() -> None:
    with pytest.raises(InputError, match=r"it\.yaml: .*quotas\.sizes"):
        convert({"sizes": {"a": "large"}}, Sizes, Path("it.yaml"), "quotas")
