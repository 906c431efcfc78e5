import atexit
import re
import shutil
from pathlib import Path

import pytest

from proxy.demo import embedded_kafka
from proxy.demo.embedded_kafka import BrokerFailed, EmbeddedKafka
from proxy.demo.kafka.java import JavaMissing
from tests.unit.proxy.demo.conftest import FakeJava


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders that are kept go with the test."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_addresses_are_known_before_it_starts() -> None:
    kafka = EmbeddedKafka(3, ports={2: 12345})
    assert kafka.port(2) == 12345
    assert list(kafka.node_ids) == [1, 2, 3]
    assert kafka.bootstrap == ",".join(f"127.0.0.1:{kafka.port(node_id)}" for node_id in (1, 2, 3))
    assert len({kafka.port(1, name) for name in ("PLAINTEXT", "INTERNAL", "CONTROLLER")}) == 3


def test_a_broker_that_dies_at_start_is_quoted(
    fake_java: FakeJava, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka = EmbeddedKafka()
    with pytest.raises(BrokerFailed) as failure, kafka:
        pass
    said = str(failure.value)
    assert re.search(r"\b4\.3\.1\b.* broker 1 .* status 3\b", said)
    assert said.endswith("\n[main] ERROR the reason")
    assert kafka.log(1).read_text() == "INFO starting\n[main] ERROR the reason\nINFO stopped\n"
    assert str(kafka.folder) in capsys.readouterr().err


def test_a_format_that_takes_too_long_is_an_error(
    fake_java: FakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = fake_java.executable.read_text()
    fake_java.executable.write_text(script.replace("while [", "exec sleep 600; while ["))
    monkeypatch.setattr(embedded_kafka, "_START_TIMEOUT", 0.2)
    with pytest.raises(BrokerFailed, match="kafka-storage format did not end"), EmbeddedKafka():
        pass


def test_each_node_is_formatted_with_its_own_id(fake_java: FakeJava) -> None:
    kafka = EmbeddedKafka(2, properties={"a": "all", "b": "all"}, broker_properties={2: {"b": "second"}})
    with pytest.raises(BrokerFailed), kafka:
        pass
    second = kafka.folder / "node-2"
    settings = (second / "server.properties").read_text()
    assert "node.id=2\n" in settings
    assert "\na=all\nb=second\n" in settings
    assert "node.id=2\n" in (second / "data" / "meta.properties").read_text()


@pytest.mark.parametrize(
    ("error", "kept"), [(KeyboardInterrupt, False), (SystemExit, False), (AssertionError, True)]
)
def test_the_folder_is_kept_after_an_error(
    fake_java: FakeJava, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], kept: bool
) -> None:
    def fail(kafka: EmbeddedKafka) -> None:
        raise error

    monkeypatch.setattr(EmbeddedKafka, "_await_ready", fail)
    kafka = EmbeddedKafka()
    with pytest.raises(error), kafka:
        pass
    assert kafka.folder.exists() == kept


@pytest.mark.parametrize("kept", [False, True])
def test_the_folder_is_kept_on_request(
    fake_java: FakeJava, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    monkeypatch.setattr(EmbeddedKafka, "_await_ready", lambda kafka: None)
    with EmbeddedKafka() as kafka:
        kafka.keep_folder = kept
    assert kafka.folder.exists() == kept


def test_no_java_is_an_error_before_anything_starts(
    fake_java: FakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = EmbeddedKafka()  # which may register the end of a block of ports
    registered: list[object] = []
    monkeypatch.setattr(atexit, "register", registered.append)
    monkeypatch.setattr(atexit, "unregister", registered.remove)
    shutil.rmtree(fake_java.executable.parent)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(JavaMissing), kafka:
        pass
    assert registered == []
