from pathlib import Path

import pytest

from proxy.demo import ivy
from proxy.demo.ivy import ResolveFailed
from tests.unit.proxy.demo.conftest import FakeJava


def retrieve(tmp_path: Path, launcher: Path) -> Path:
    request = tmp_path / "ivy.xml"
    request.touch()
    into = tmp_path / "into"
    into.mkdir(exist_ok=True)
    ivy.retrieve("Apache Kafka 1.2.3", request, into, cache=tmp_path / "ivy", launcher=launcher)
    return into


def test_fetching_is_announced(
    tmp_path: Path, fake_java: FakeJava, capsys: pytest.CaptureFixture[str]
) -> None:
    into = retrieve(tmp_path, fake_java.executable)
    assert [jar.name for jar in into.iterdir()] == ["kafka.jar"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Apache Kafka 1.2.3: ")
    assert str(tmp_path) in line
    assert not (tmp_path / "ivy.log").exists()


def test_a_terminal_shows_the_number_of_jars(
    tmp_path: Path,
    fake_java: FakeJava,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    retrieve(tmp_path, fake_java.executable)
    assert capsys.readouterr().err.endswith(": 1 jars\n")


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (
            "module not found: kafka\nServer access error at url x (java.net.ConnectException: rejected)\n",
            "Server access error at url x (java.net.ConnectException: rejected)",
        ),
        (
            ":: problems\n\t\tmodule not found: org.apache.kafka#kafka_2.13;9.9.9\n",
            "module not found: org.apache",
        ),
        ("\t[FAILED     ] kafka.jar: invalid sha1\n", "[FAILED     ] kafka.jar: invalid sha1"),
        ("something new\n", "Apache Ivy failed"),
    ],
)
def test_a_failure_says_why(tmp_path: Path, fake_java: FakeJava, says: str, reason: str) -> None:
    fake_java.break_network(says)
    with pytest.raises(ResolveFailed) as failure:
        retrieve(tmp_path, fake_java.executable)
    assert "Apache Kafka 1.2.3" in str(failure.value)
    assert reason in str(failure.value)
    assert str(tmp_path / "ivy.log") in str(failure.value)
    assert (tmp_path / "ivy.log").read_text() == says


def test_a_network_error_is_retried(tmp_path: Path, fake_java: FakeJava) -> None:
    fake_java.break_network("Server access error")
    with pytest.raises(ResolveFailed):
        retrieve(tmp_path, fake_java.executable)
    assert fake_java.fetches == 3


def test_without_pyspark_there_is_no_ivy(
    tmp_path: Path, fake_java: FakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ivy, "find_spec", lambda name: None)
    with pytest.raises(ResolveFailed, match=r"kafka-quota-proxy\[pipeline\]"):
        retrieve(tmp_path, fake_java.executable)
