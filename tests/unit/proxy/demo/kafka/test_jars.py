import os
from pathlib import Path

import pytest

from proxy.demo.kafka import jars
from proxy.demo.kafka.maven import FetchFailed, Jar
from tests.unit.proxy.demo.conftest import FakeJava


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The cache's folder, as `fake_java` sets it."""
    return tmp_path / "cache" / "kafka-quota-proxy"


def test_a_version_is_fetched_once(fake_java: FakeJava, cache: Path) -> None:
    distribution = jars.ensure("4.3.1")
    assert distribution.folder.parent == cache
    assert (distribution.folder / "kafka.jar").exists()
    assert jars.ensure("4.3.1") == distribution
    assert fake_java.fetches == 1
    assert sorted(entry.name for entry in cache.iterdir()) == [distribution.folder.name, "lock"]


def test_each_version_has_its_own_folder(fake_java: FakeJava) -> None:
    folders = {jars.ensure(version).folder for version in ("4.3.1", "3.9.1", "4.3.1")}
    assert sorted(folder.name[:11] for folder in folders) == ["kafka-3.9.1", "kafka-4.3.1"]
    assert fake_java.fetches == 2


def test_another_list_of_a_version_has_another_folder(
    fake_java: FakeJava, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = jars.ensure().folder
    monkeypatch.setattr(jars, "LISTS", tmp_path)
    (tmp_path / "kafka-4.3.1.txt").write_text("org.example:other:1.0 abc\n")
    assert jars.ensure("4.3.1").folder != folder
    assert fake_java.fetches == 2


def test_a_version_without_a_list(fake_java: FakeJava) -> None:
    with pytest.raises(FetchFailed, match=r"1\.0\.0.*3\.9\.1, 4\.3\.1"):
        jars.ensure("1.0.0")


@pytest.mark.parametrize("version", ["4.3.1", "3.9.1"])
def test_a_list_names_each_jar_once_with_a_checksum(version: str) -> None:
    lines = (jars.LISTS / f"kafka-{version}.txt").read_text().splitlines()
    listed = [Jar.parse(line) for line in lines]
    assert len({jar.file_name for jar in listed}) == len(listed)
    assert f"kafka-clients-{version}.jar" in {jar.file_name for jar in listed}
    assert all(len(bytes.fromhex(jar.sha256)) == 32 for jar in listed)


@pytest.mark.parametrize("terminal", [True, False])
def test_fetching_is_announced(
    fake_java: FakeJava,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    cache: Path,
    terminal: bool,
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    jars.ensure("4.3.1")
    said = capsys.readouterr().err
    assert "4.3.1" in said
    assert str(cache) in said
    assert ("\r" in said) == terminal
    jars.ensure("4.3.1")
    assert capsys.readouterr().err == ""


def test_a_failed_fetch_is_retried_by_the_next_call(fake_java: FakeJava, cache: Path) -> None:
    fake_java.break_network("Server access error")
    with pytest.raises(FetchFailed):
        jars.ensure()
    assert not list(cache.glob("kafka-*"))
    fake_java.mend_network()
    assert (jars.ensure().folder / "kafka.jar").exists()


def test_files_of_a_killed_fetch_are_removed(fake_java: FakeJava, cache: Path) -> None:
    unfinished = cache / "unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "half.jar").touch()
    assert not (jars.ensure().folder / "half.jar").exists()


def test_the_command_line(fake_java: FakeJava) -> None:
    distribution = jars.ensure()
    for name in ("b.jar", "a.jar"):
        (distribution.folder / name).touch()
    class_path = os.pathsep.join(str(distribution.folder / name) for name in ("a.jar", "b.jar", "kafka.jar"))
    java = str(fake_java.executable)
    assert distribution.command("kafka.Kafka", "x", jvm_flags=["-Xmx1m"]) == [
        *(java, "-Xmx1m", "-cp", class_path, "kafka.Kafka", "x")
    ]
    distribution.class_archive.touch()
    assert distribution.class_archive.name == "classes-17.0.99.jsa"
    archive = f"-XX:SharedArchiveFile={distribution.class_archive}"
    assert distribution.command("kafka.Kafka") == [java, archive, "-cp", class_path, "kafka.Kafka"]


def test_the_cache_is_under_home_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert jars.cache_folder() == tmp_path / ".cache" / "kafka-quota-proxy"
