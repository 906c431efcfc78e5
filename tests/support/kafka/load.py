"""Load: a producer and a consumer that run while a test changes the cluster, and checks of their messages."""

import threading
import time
from types import TracebackType
from typing import Any, Final, Self

import confluent_kafka

from tests.support.kafka.clients import Confluent, poll_all
from tests.support.messages.numbered import Got, check_all_there, key, value
from tests.support.waiting import wait_until

BETWEEN_SECONDS: Final = 0.002
AHEAD: Final = 2000
"""Messages that may wait for their acknowledgement: what a quota delays does not add up on a slow machine."""
END_SECONDS: Final = 60.0


class Load:
    """Numbered messages from an idempotent producer, read by a consumer at the same time.

    The consumer is in no group, so a message that it reads twice was sent twice.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int, first: int = 0) -> None:
        """`first`: the number of messages that the topic has already, numbered from 0."""
        self._topic: Final = topic
        self._stopping: Final = threading.Event()
        # A request for each message would be most of the brokers' work.
        self._producer: Final = Confluent().producer(bootstrap, linger_ms=50)
        self._consumer: Final = Confluent().consumer(bootstrap)
        start = confluent_kafka.OFFSET_BEGINNING
        self._consumer.assign(
            [confluent_kafka.TopicPartition(topic, partition, start) for partition in range(partitions)]
        )
        self._first: Final = first
        self._sent = first
        self._acknowledged = 0
        self._errors: Final[list[Any]] = []
        self._got: Final[list[Got]] = []
        self._threads: Final = [threading.Thread(target=work) for work in (self._produce, self._consume)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._consumer.close()

    def _produce(self) -> None:
        while not self._stopping.is_set():
            if self._sent - self._first - self._acknowledged < AHEAD:
                self._producer.produce(
                    self._topic, value(self._sent), key(self._sent), on_delivery=self._delivered
                )
                self._sent += 1
            self._producer.poll(0)
            time.sleep(BETWEEN_SECONDS)

    def _delivered(self, error: Any, _: Any) -> None:
        if error:
            self._errors.append(error)
        else:
            self._acknowledged += 1

    def _consume(self) -> None:
        while not self._stopping.is_set():
            poll_all(self._consumer, self._got)

    def go_on(self, messages: int = 200) -> None:
        """Wait until this many more messages have been acknowledged, and as many have been read."""
        acknowledged, read = self._acknowledged + messages, len(self._got) + messages
        wait_until(
            lambda: self._acknowledged >= acknowledged and len(self._got) >= read,
            f"{messages} more messages ({self._errors[:3]})",
            END_SECONDS,
        )

    def check(self) -> None:
        """Stop, and check that every message was acknowledged, and was read once and in order."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        assert self._producer.flush(END_SECONDS) == 0, "not everything was acknowledged"
        assert not self._errors, self._errors[0]
        wait_until(lambda: poll_all(self._consumer, self._got) >= self._sent, "all messages", END_SECONDS)
        poll_all(self._consumer, self._got)
        check_all_there(self._got, self._sent)
