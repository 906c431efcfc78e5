"""Reassignments with kafka-reassign-partitions, and their rates."""

import hashlib
import json
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.topics import read_log
from tests.support.process.proxy_process import ProxyProcess
from tests.support.waiting import wait_until

BETWEEN_SECONDS: Final = 0.1


class Reassignment:
    """The plan of a reassignment: the target brokers of each partition of a topic. Methods return the tool's
    output.
    """

    def __init__(
        self, kafka: EmbeddedKafka, bootstrap: str, folder: Path, topic: str, on: Sequence[Sequence[int]]
    ) -> None:
        self._kafka = kafka
        self._bootstrap = bootstrap
        self._plan = folder / f"{topic}.json"
        moves = [{"topic": topic, "partition": number, "replicas": list(to)} for number, to in enumerate(on)]
        self._plan.write_text(json.dumps({"version": 1, "partitions": moves}))

    def execute(self, throttle: int | None = None) -> str:
        return self._run("--execute", *(("--throttle", str(throttle)) if throttle else ()))

    def verify(self) -> str:
        return self._run("--verify")

    def cancel(self) -> str:
        return self._run("--cancel")

    def _run(self, *what: str) -> str:
        plan = ("--reassignment-json-file", str(self._plan))
        return self._kafka.run_tool(
            "kafka-reassign-partitions", "--bootstrap-server", self._bootstrap, *plan, *what
        ).stdout


class Meter:
    """Samples the bytes of throttled replicas that a broker fetches, or sends as their leader, during its
    `with` block.
    """

    def __init__(self, proxy: ProxyProcess, broker: int, side: str = "follower", *more: ProxyProcess) -> None:
        """more: further proxies through which the broker's followers fetch."""
        self._proxies: Final = (proxy, *more)
        self._broker: Final = str(broker)
        self._sample: Final = f"quota_proxy_{side}_replication_throttled_bytes_total"
        self._before = 0.0
        self._samples: Final[list[tuple[float, float]]] = []
        self._stop: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._before = self._read()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> float:
        return sum(proxy.metric(self._sample, broker=self._broker) for proxy in self._proxies)

    def _watch(self) -> None:
        while not self._stop.wait(BETWEEN_SECONDS):
            self._samples.append((time.monotonic(), self._read() - self._before))

    @property
    def moved(self) -> float:
        """The number of bytes so far."""
        return self._samples[-1][1] if self._samples else 0.0

    def wait(self, size: float, seconds: float = 60.0) -> None:
        """Wait until this many bytes have been moved."""
        wait_until(lambda: self.moved >= size, f"{size:.0f} bytes moved at broker {self._broker}", seconds)

    @property
    def seconds(self) -> float:
        """The seconds from the first byte to the last one so far."""
        samples = list(self._samples)
        began = next(at for at, size in samples if size > 0)
        return next(at for at, size in samples if size == samples[-1][1]) - began

    def by_second(self, since: float = 0.0) -> list[float]:
        """The bytes of each whole second from the first byte, or from `since` (time.monotonic)."""
        samples = list(self._samples)
        last = next(at for at, size in reversed(samples) if size < samples[-1][1])
        began = max(since, next(at for at, size in samples if size > 0))
        sizes = [size_at(samples, began + second) for second in range(int(last - began) + 1)]
        return [after - before for before, after in pairwise(sizes)]


def size_at(samples: Sequence[tuple[float, float]], time: float) -> float:
    """The bytes moved until a time, interpolated between two samples, because a busy machine samples late."""
    for (before, size), (after, more) in pairwise(samples):
        if before <= time < after:
            return size + (more - size) * (time - before) / (after - before)
    return samples[-1][1]


def digests(kafka: EmbeddedKafka, topic: str, partitions: int) -> list[str]:
    """A checksum of the batches of each partition, read from its leader."""
    found = []
    for partition in range(partitions):
        digest = hashlib.sha256()
        for piece in read_log(kafka, topic, partition):
            digest.update(piece)
        found.append(digest.hexdigest())
    return found


def equal(kafka: EmbeddedKafka, topic: str, on: Sequence[Sequence[int]]) -> bool:
    """Whether the replicas of each partition are equal byte for byte on these brokers' disks, and not all
    empty.
    """
    data = [[_on_disk(kafka, topic, number, broker) for broker in to] for number, to in enumerate(on)]
    same = all(replica == replicas[0] for replicas in data for replica in replicas)
    return same and any(replicas[0] for replicas in data)


def _on_disk(kafka: EmbeddedKafka, topic: str, partition: int, broker: int) -> bytes:
    folder = kafka.folder / f"node-{broker}" / "data" / f"{topic}-{partition}"
    return b"".join(file.read_bytes() for file in sorted(folder.glob("*.log")))
