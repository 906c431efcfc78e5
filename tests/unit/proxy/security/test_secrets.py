"""Secrets from files and environment variables."""

from pathlib import Path

import pytest

from proxy.security.secrets import SecretMissing, read_secret


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(" s3cret \r\n")
    assert read_secret(str(file), None) == " s3cret "
    file.write_text("another")
    assert read_secret(str(file), None) == "another"


def test_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "s3cret")
    assert read_secret(None, "SOME_SECRET") == "s3cret"
    monkeypatch.setenv("SOME_SECRET", "")
    with pytest.raises(SecretMissing, match="SOME_SECRET") as caught:
        read_secret(None, "SOME_SECRET")
    assert caught.value.env


@pytest.mark.parametrize(
    ("content", "cause"), [(None, FileNotFoundError), (b"\n", type(None)), (b"\xff\xfe", UnicodeDecodeError)]
)
def test_unusable_file_is_rejected(tmp_path: Path, content: bytes | None, cause: type[object]) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SecretMissing, match=str(file)) as caught:
        read_secret(str(file), None)
    assert not caught.value.env
    assert type(caught.value.__cause__) is cause
