from pathlib import Path

import pytest

from proxy.demo.kafka import java
from proxy.demo.kafka.java import JavaMissing


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, and no JAVA_HOME."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


def install(folder: Path, says: str, status: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "java"
    script.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {status}\n")
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("version", ["17.0.15", "17", "21.0.2", "25-ea"])
def test_a_java_on_path_that_is_new_enough(path: Path, version: str) -> None:
    script = install(path, f'openjdk version "{version}" 2025-04-15')
    assert java.find() == java.Java(script, version)


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_392", "16"])
def test_a_java_that_is_too_old(path: Path, version: str) -> None:
    script = install(path, f'openjdk version "{version}"')
    with pytest.raises(JavaMissing, match=f"{java.MINIMUM} ") as missing:
        java.find()
    assert str(script) in missing.value.found
    assert version in missing.value.found


def test_no_java(path: Path) -> None:
    with pytest.raises(JavaMissing, match=r"JAVA_HOME .* PATH\b"):
        java.find()


def test_a_stub_that_only_says_where_to_get_java(path: Path) -> None:
    install(path, "Unable to locate a Java Runtime.", status=1)
    with pytest.raises(JavaMissing, match="Unable to locate a Java Runtime"):
        java.find()


def test_java_home_wins_over_path(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(path, 'openjdk version "17.0.1"')
    script = install(tmp_path / "home" / "bin", 'openjdk version "21.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java.find().executable == script


def test_a_java_home_without_java_is_skipped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = install(path, 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(path.parent / "nothing"))
    assert java.find().executable == script
