"""Checks that the writers' messages are in the brokers' logs, and that a consumer group has read them."""

import threading
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

from bench.soak.scenario import Outcome
from bench.soak.writers import Writer
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import new_group
from tests.support.kafka.members import ConfluentMember
from tests.support.kafka.topics import leaders, read_log
from tests.support.messages.numbered import number
from tests.support.messages.requests import values
from tests.support.waiting import wait_until

READ_SECONDS: Final = 60.0
"""The longest wait until the group has read all messages."""


class Group:
    """Two members of a consumer group that read a topic while the block runs."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        group = new_group()
        self._members: Final = [ConfluentMember(bootstrap, topic, group, "classic") for _ in range(2)]
        self.read: Final[Counter[int]] = Counter()
        """How often each message was read."""
        self.errors: Final[list[str]] = []
        self._over: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._over.is_set():
            for member in self._members:
                try:
                    self.read.update(number(got.value) for got in member.poll())
                except AssertionError as error:
                    self.errors.append(str(error))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        for member in self._members:
            member.leave()

    def catch_up(self, numbers: Sequence[int]) -> None:
        """Wait until all of these messages were read."""
        wanted = set(numbers)
        wait_until(lambda: wanted <= self.read.keys(), "the group's reading of all messages", READ_SECONDS)


def stored(kafka: EmbeddedKafka, topic: str) -> list[list[int]]:
    """The numbers of the messages in the log of each partition, in order."""
    return [
        [
            number(each.rjust(8, b"0"))
            for records in read_log(kafka, topic, partition)
            for each in values(records)
        ]
        for partition in sorted(leaders(kafka, topic))
    ]


def check_stored(kafka: EmbeddedKafka, writer: Writer, outcome: Outcome) -> dict[str, Any]:
    """Compare a writer's acknowledged messages with the log; return the counts."""
    logs = stored(kafka, writer.topic)
    found = Counter(each for log in logs for each in log)
    lost = set(writer.done.numbers) - found.keys()
    twice = sum(times - 1 for times in found.values())
    failed = writer.done.failures
    outcome.check(not lost, f"{writer.name}: {len(lost)} acknowledged messages are lost: {sorted(lost)[:5]}")
    if writer.idempotent:
        outcome.check(not twice, f"{writer.name}: {twice} messages are stored twice")
        outcome.check(not failed, f"{writer.name}: {len(failed)} messages failed: {failed[:1]}")
        ordered = all(log == sorted(log) for log in logs)
        outcome.check(ordered, f"{writer.name}: messages of a partition are out of order")
    return {
        "acknowledged": len(writer.done.numbers),
        "lost": len(lost),
        "twice": twice,
        "failed": len(failed),
    }


def check_read(group: Group, writer: Writer, outcome: Outcome) -> dict[str, int]:
    """Wait until the group has read the writer's messages; return how many it read, and how many again."""
    try:
        group.catch_up(writer.done.numbers)
    except AssertionError:
        missing = set(writer.done.numbers) - group.read.keys()
        outcome.check(False, f"the group has not read {len(missing)} messages: {sorted(missing)[:5]}")
    twice = sum(times - 1 for times in group.read.values())
    outcome.check(not group.errors, f"the group failed: {group.errors[:1]}")
    return {"read": len(group.read), "read_twice": twice}
