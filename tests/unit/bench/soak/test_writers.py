"""Writers: what they note of their messages, and when they go on."""

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.soak import writers as module
from bench.soak.writers import (
    Acknowledged,
    JavaWriter,
    KafkaPythonWriter,
    LibrdkafkaWriter,
    go_on,
    running,
)
from tests.support.messages.numbered import number, value

TOOL = """
import json, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
for number in range(60):
    print(json.dumps({"name": "producer_send_success", "value": str(number)}))
print("not json")
print('{"name": "two"}{"name": "objects"}')
print(json.dumps({"name": "producer_send_error", "exception": "Timeout", "message": "late"}))
print(json.dumps({"name": "startup_complete"}), flush=True)
signal.sigwait([signal.SIGTERM])
"""


class Producer:
    """confluent-kafka's, which acknowledges each message at the next poll() but for every fifth."""

    def __init__(self) -> None:
        self.unsent: list[tuple[bytes, Any]] = []
        self.left = 0

    def produce(self, topic: str, value: bytes, *, on_delivery: Any) -> None:
        self.unsent.append((value, on_delivery))

    def poll(self, seconds: float) -> None:
        for sent, on_delivery in self.unsent:
            error = "timed out" if number(sent) % 5 == 4 else None
            on_delivery(error, SimpleNamespace(value=lambda sent=sent: sent))
        self.unsent.clear()

    def flush(self, seconds: float) -> int:
        self.poll(0)
        return self.left


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> Producer:
    made = Producer()
    monkeypatch.setattr(module, "Confluent", lambda: SimpleNamespace(producer=lambda bootstrap: made))
    monkeypatch.setattr(module, "PER_SECOND", 2000)
    return made


def librdkafka() -> LibrdkafkaWriter:
    return LibrdkafkaWriter(cast("Any", None), "host:1", "t")


def test_acknowledgements_have_their_times() -> None:
    done = Acknowledged()
    before = time.monotonic()
    for message in (3, 1):
        done.add(message)
    assert done.numbers == [3, 1]
    assert before <= done.times[0] <= done.times[1] <= time.monotonic()


def test_a_writer_notes_what_was_delivered_and_what_failed(producer: Producer) -> None:
    writer = librdkafka()
    with running([writer]):
        assert len(writer.done.numbers) >= 50
    sent = len(writer.done.numbers) + len(writer.done.failures)
    assert writer.done.numbers == [each for each in range(sent) if each % 5 != 4]
    assert set(writer.done.failures) == {"timed out"}


def test_what_is_not_flushed_has_failed(producer: Producer) -> None:
    producer.left = 7
    writer = librdkafka()
    with running([writer]):
        pass
    assert writer.done.failures[-1].startswith("7 messages")


def test_a_tool_of_java_is_a_writer(tmp_path: Path) -> None:
    started: list[tuple[str, ...]] = []

    def start_tool(*arguments: str) -> Any:
        started.append(arguments)
        return subprocess.Popen([sys.executable, "-c", TOOL], stdout=subprocess.PIPE, text=True)

    kafka = SimpleNamespace(folder=tmp_path, start_tool=start_tool)
    writer = JavaWriter(cast("Any", kafka), "host:1", "t")
    with running([writer]):
        pass
    assert writer.done.numbers == list(range(60))
    assert writer.done.failures == ["not json\n", '{"name": "two"}{"name": "objects"}\n', "Timeout: late"]
    (arguments,) = started
    assert arguments[0] == "kafka-verifiable-producer"
    options = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    assert (options["--bootstrap-server"], options["--topic"], options["--acks"]) == ("host:1", "t", "-1")
    assert "enable.idempotence=true" in Path(options["--command-config"]).read_text().splitlines()


def test_kafka_python_is_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def spawn(command: list[str], **streams: object) -> Any:
        commands.append(command)
        return subprocess.Popen([sys.executable, "-c", TOOL], stdout=subprocess.PIPE, text=True)

    monkeypatch.setattr(module, "Children", lambda: SimpleNamespace(spawn=spawn))
    writer = KafkaPythonWriter(cast("Any", None), "host:1", "t")
    with running([writer]):
        pass
    assert writer.done.numbers == list(range(60))
    assert commands == [[sys.executable, "-m", "bench.soak.plain_writer", "host:1", "t"]]


def test_a_writer_that_does_not_go_on_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GO_ON_SECONDS", 0.1)
    fast, slow = (SimpleNamespace(name=name, done=Acknowledged()) for name in ("fast", "slow"))
    slow.done.failures.append("broken")
    with pytest.raises(AssertionError, match=r"0\.1 s"):
        go_on(cast("Any", [fast, slow]), 1)
    go_on(cast("Any", [fast, slow]), 0)


def test_values_are_numbered() -> None:
    assert number(value(12)) == 12
