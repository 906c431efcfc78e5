import os
from pathlib import Path

import pytest

from proxy.demo import kafka_distribution
from proxy.demo.ivy import ResolveFailed
from tests.unit.proxy.demo.conftest import FakeJava


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The cache's folder, as `fake_java` sets it."""
    return tmp_path / "cache" / "kafka-quota-proxy"


def test_a_version_is_fetched_once(fake_java: FakeJava, cache: Path) -> None:
    distribution = kafka_distribution.ensure("4.3.1")
    assert distribution.folder == cache / "kafka-4.3.1"
    assert (distribution.folder / "kafka.jar").exists()
    assert kafka_distribution.ensure("4.3.1") == distribution
    assert fake_java.fetches == 1
    assert sorted(entry.name for entry in cache.iterdir()) == ["kafka-4.3.1", "lock"]


def test_each_version_has_its_own_folder(fake_java: FakeJava, cache: Path) -> None:
    for version in ("4.3.1", "3.9.1", "4.3.1"):
        assert f'rev="{version}"' in (kafka_distribution.ensure(version).folder / "ivy.xml").read_text()
    assert fake_java.fetches == 2


def test_a_version_of_another_request_is_fetched_again(fake_java: FakeJava) -> None:
    folder = kafka_distribution.ensure().folder
    (folder / "ivy.xml").write_text("what an older release of ours asked for")
    (folder / "old.jar").touch()
    kafka_distribution.ensure()
    assert fake_java.fetches == 2
    assert not (folder / "old.jar").exists()


def test_a_failed_fetch_is_retried_by_the_next_call(fake_java: FakeJava, cache: Path) -> None:
    fake_java.break_network("Server access error")
    with pytest.raises(ResolveFailed):
        kafka_distribution.ensure()
    assert not (cache / "kafka-4.3.1").exists()
    fake_java.mend_network()
    assert (kafka_distribution.ensure().folder / "kafka.jar").exists()


def test_files_of_a_killed_fetch_are_removed(fake_java: FakeJava, cache: Path) -> None:
    unfinished = cache / "unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "half.jar").touch()
    assert not (kafka_distribution.ensure().folder / "half.jar").exists()


def test_the_command_line(fake_java: FakeJava) -> None:
    distribution = kafka_distribution.ensure()
    for name in ("b.jar", "a.jar"):
        (distribution.folder / name).touch()
    jars = os.pathsep.join(str(distribution.folder / name) for name in ("a.jar", "b.jar", "kafka.jar"))
    java = str(fake_java.executable)
    assert distribution.command("kafka.Kafka", "x", jvm_flags=["-Xmx1m"]) == [
        *(java, "-Xmx1m", "-cp", jars, "kafka.Kafka", "x")
    ]
    distribution.class_archive.touch()
    assert distribution.class_archive.name == "classes-17.0.99.jsa"
    archive = f"-XX:SharedArchiveFile={distribution.class_archive}"
    assert distribution.command("kafka.Kafka") == [java, archive, "-cp", jars, "kafka.Kafka"]


def test_the_cache_is_under_home_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kafka_distribution.cache_folder() == tmp_path / ".cache" / "kafka-quota-proxy"
