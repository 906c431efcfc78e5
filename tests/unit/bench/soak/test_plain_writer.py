"""kafka-python's producer as a program: what it prints, and its end. The scenarios run it on a real Kafka."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import kafka as kafka_python
import pytest
from kafka.errors import KafkaTimeoutError

from bench.soak.plain_writer import LOWEST_PRIORITY, main, say
from tests.support.messages.numbered import number


class Sent:
    """A future that is done."""

    def __init__(self, message: int) -> None:
        self._message = message

    def add_callback(self, call: Callable[[object], None]) -> None:
        if self._message != 1:
            call(None)

    def add_errback(self, call: Callable[[BaseException], None]) -> None:
        if self._message == 1:
            call(ValueError("wrong"))


class Producer:
    """kafka-python's. The second message fails, and SIGTERM comes with the third."""

    def __init__(self, **config: Any) -> None:
        assert (config["acks"], config["enable_idempotence"]) == ("all", False)

    def send(self, topic: str, value: bytes) -> Sent:
        assert topic == "numbers"
        if number(value) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return Sent(number(value))

    def flush(self, seconds: float) -> None:
        raise KafkaTimeoutError("late")

    def close(self) -> None:
        print("closed")


@pytest.fixture
def handlers() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_it_sends_until_sigterm_and_yields_to_others(
    handlers: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nice: list[int] = []
    monkeypatch.setattr(os, "nice", nice.append)
    monkeypatch.setattr(kafka_python, "KafkaProducer", Producer)
    main("host:1", "numbers")
    *lines, last = capsys.readouterr().out.splitlines()
    events = [json.loads(line) for line in lines]
    done = [event["value"] for event in events if event["name"] == "producer_send_success"]
    errors = [event["exception"] for event in events if event["name"] == "producer_send_error"]
    assert (done, errors) == (["0", "2"], ["ValueError", "KafkaTimeoutError"])
    assert (nice, last) == ([LOWEST_PRIORITY], "closed")


class SlowOutput:
    """Another thread runs between two writes."""

    def __init__(self) -> None:
        self.text = ""
        self.written = threading.Event()

    def write(self, text: str) -> None:
        self.text += text
        self.written.set()
        threading.Event().wait(0.01)

    def flush(self) -> None:
        pass


def test_lines_of_two_threads_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    output = SlowOutput()
    monkeypatch.setattr("sys.stdout", output)
    other = threading.Thread(target=lambda: say(name="first"))
    other.start()
    output.written.wait(10)
    say(name="second")
    other.join()
    assert [json.loads(line)["name"] for line in output.text.splitlines()] == ["first", "second"]
