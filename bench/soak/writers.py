"""Writers: producers of several libraries that send numbered messages and record each acknowledgement."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Protocol

from proxy.demo.children import Children, reap
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import Confluent
from tests.support.messages.numbered import number, value
from tests.support.waiting import wait_until

PER_SECOND: Final = 100
"""Messages per second of each writer."""
GO_ON_SECONDS: Final = 60.0
"""The longest time until a writer continues. It is generous, because that time is measured."""
FLUSH_SECONDS: Final = 60.0
"""The longest wait for the acknowledgements of a writer that is stopped."""


class Acknowledged:
    """The acknowledged messages with their times, and the failures."""

    def __init__(self) -> None:
        self.times: Final[list[float]] = []
        self.numbers: Final[list[int]] = []
        self.failures: Final[list[str]] = []

    def add(self, message: int) -> None:
        """Record an acknowledgement."""
        self.times.append(time.monotonic())
        self.numbers.append(message)


class Writer(Protocol):
    """A producer that sends PER_SECOND messages a second to a topic of its own until it is stopped."""

    @property
    def name(self) -> str:
        """The library."""

    @property
    def idempotent(self) -> bool:
        """Whether a retried message is stored once."""

    @property
    def topic(self) -> str:
        """The writer's own topic."""

    @property
    def done(self) -> Acknowledged:
        """The results of the messages."""

    def start(self) -> None:
        """Begin to send."""

    def stop(self) -> None:
        """Stop sending, and wait until each message is acknowledged or has failed."""


def ticks(over: threading.Event) -> Iterator[int]:
    """Yield the number of each message when it is due, PER_SECOND a second, until `over` is set."""
    due = time.monotonic()
    sent = 0
    while not over.is_set():
        yield sent
        sent += 1
        due += 1 / PER_SECOND
        over.wait(max(due - time.monotonic(), 0.0))


class LibrdkafkaWriter:
    """confluent-kafka, idempotent, with its defaults, in a thread."""

    name = "librdkafka"
    idempotent = True

    def __init__(self, kafka: EmbeddedKafka, bootstrap: str, topic: str) -> None:
        self.topic = topic
        self.done = Acknowledged()
        self._producer: Final = Confluent().producer(bootstrap)
        self._over: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        for message in ticks(self._over):
            self._producer.produce(self.topic, value(message), on_delivery=self._delivered)
            self._producer.poll(0)
        left = self._producer.flush(FLUSH_SECONDS)
        if left:
            self.done.failures.append(f"{left} messages are unacknowledged after {FLUSH_SECONDS:g} s")

    def _delivered(self, error: Any, message: Any) -> None:
        if error:
            self.done.failures.append(str(error))
        else:
            self.done.add(number(message.value()))


class _InProcess:
    """A program that prints what kafka-verifiable-producer does, until SIGTERM."""

    def __init__(self, topic: str, launch: Callable[[], Any]) -> None:
        self.topic = topic
        self.done = Acknowledged()
        self._launch: Final = launch
        self._thread: Final = threading.Thread(target=self._listen)

    def start(self) -> None:
        self._process = self._launch()
        self._thread.start()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(FLUSH_SECONDS)
        self._thread.join()
        reap(self._process)

    def _listen(self) -> None:
        for line in self._process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                # Without a reader, the program would soon wait in each print().
                self.done.failures.append(line)
                continue
            if event["name"] == "producer_send_success":
                self.done.add(int(event["value"]))
            elif event["name"] == "producer_send_error":
                self.done.failures.append(f"{event['exception']}: {event['message']}")


class JavaWriter(_InProcess):
    """Kafka's verifiable producer, idempotent, with the defaults of the Java client.

    The tool disables retries by default.
    """

    name = "java"
    idempotent = True

    def __init__(self, kafka: EmbeddedKafka, bootstrap: str, topic: str) -> None:
        config = kafka.folder / f"{topic}.properties"
        config.write_text("enable.idempotence=true\nretries=2147483647\n")
        arguments = (
            *("--bootstrap-server", bootstrap, "--topic", topic, "--acks", "-1"),
            *("--throughput", str(PER_SECOND), "--command-config", str(config)),
        )
        super().__init__(topic, lambda: kafka.start_tool("kafka-verifiable-producer", *arguments))


class KafkaPythonWriter(_InProcess):
    """kafka-python (plain_writer), not idempotent: a retry may store a message twice."""

    name = "kafka-python"
    idempotent = False

    def __init__(self, kafka: EmbeddedKafka, bootstrap: str, topic: str) -> None:
        command = [sys.executable, "-m", "bench.soak.plain_writer", bootstrap, topic]
        super().__init__(topic, lambda: Children().spawn(command, stdout=subprocess.PIPE))


WRITERS: Final[Sequence[Callable[[EmbeddedKafka, str, str], Writer]]] = (
    LibrdkafkaWriter,
    JavaWriter,
    KafkaPythonWriter,
)
IN_TESTS: Final = WRITERS[:2]
"""The start of another program takes a second."""


@contextmanager
def running(writers: Sequence[Writer]) -> Iterator[None]:
    """Run the writers while the block runs, and wait for their messages."""
    with ExitStack() as stack:
        for writer in writers:
            writer.start()
            stack.callback(writer.stop)
        go_on(writers)
        yield


def go_on(writers: Sequence[Writer], messages: int = 50) -> None:
    """Wait until each writer has this many more acknowledgements."""
    wanted = [len(writer.done.numbers) + messages for writer in writers]

    def behind() -> list[str]:
        return [
            f"{writer.name} {writer.done.failures[:1]}"
            for writer, goal in zip(writers, wanted, strict=True)
            if len(writer.done.numbers) < goal
        ]

    wait_until(lambda: not behind(), f"{messages} more acknowledgements", GO_ON_SECONDS)
