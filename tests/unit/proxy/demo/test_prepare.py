import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.demo import class_archive, prepare
from proxy.demo.kafka import jars
from proxy.demo.kafka.jars import KafkaDistribution
from tests.unit.proxy.demo.conftest import FakeJava


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The cache's folder, as `fake_java` sets it."""
    return tmp_path / "cache" / "kafka-quota-proxy"


def test_each_version_gets_an_archive_once(fake_java: FakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def make(distribution: KafkaDistribution) -> None:
        made.append(distribution.version)
        distribution.class_archive.touch()

    monkeypatch.setattr(class_archive, "make", make)
    prepare.main(["4.3.1", "3.9.1"])
    prepare.main([])
    assert made == ["4.3.1", "3.9.1"]
    assert fake_java.fetches == 2


def test_fetching_runs_no_broker(fake_java: FakeJava) -> None:
    """Whoever needs only the jars must not pay for a broker's start, nor import what runs one."""
    imports = "import sys, proxy.demo.kafka.jars; print('proxy.demo.embedded_kafka' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", imports], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_second_process_waits_and_uses_what_the_first_fetched(fake_java: FakeJava, cache: Path) -> None:
    cache.mkdir(parents=True)
    ensure = [sys.executable, "-m", "proxy.demo.prepare"]
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.Popen(ensure, stderr=subprocess.PIPE, text=True)
        assert second.stderr is not None
        assert "Apache Kafka" in second.stderr.readline()
        text = (jars.LISTS / "kafka-4.3.1.txt").read_bytes()
        first = cache / f"kafka-4.3.1-{hashlib.sha256(text).hexdigest()[:8]}"
        first.mkdir()
        (first / "classes-17.0.99.jsa").touch()
        assert second.poll() is None
    _, errors = second.communicate(timeout=30)
    assert (second.returncode, errors) == (0, "")
    assert fake_java.fetches == 0


def test_the_command_reports_a_missing_java_in_one_line(fake_java: FakeJava) -> None:
    fake_java.executable.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    command = [sys.executable, "-m", "proxy.demo.prepare"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Java 11.0.2" in done.stderr
