"""Reassignments with kafka-reassign-partitions, and their rates."""

import hashlib
import json
import statistics
import threading
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Final

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.topics import read_log
from tests.support.process.pauses import Pauses
from tests.support.process.proxy_process import ProxyProcess, total
from tests.support.waiting import wait_until

BETWEEN_SECONDS: Final = 0.15


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
    """The bytes of throttled replicas that a broker has fetched, or sent as their leader, over time."""

    def __init__(self, broker: int, before: float, pauses: Pauses) -> None:
        self._broker: Final = broker
        self._before: Final = before
        self._pauses: Final = pauses
        self._samples: Final[list[tuple[float, float]]] = []

    def add(self, at: float, size: float) -> None:
        """Take a sample: the time (time.monotonic), and the broker's bytes until then."""
        self._samples.append((at, size - self._before))

    @property
    def moved(self) -> float:
        """The number of bytes so far."""
        return self._samples[-1][1] if self._samples else 0.0

    @property
    def pauses(self) -> float:
        """The seconds for which the machine has paused so far."""
        return self._pauses.seconds

    def wait(self, size: float, seconds: float = 60.0) -> None:
        """Wait until this many bytes have been moved."""
        wait_until(lambda: self.moved >= size, f"{size:.0f} bytes moved at broker {self._broker}", seconds)

    @property
    def seconds(self) -> float:
        """The seconds from the first byte to the last one so far."""
        samples = list(self._samples)
        began = next(at for at, size in samples if size > 0)
        return next(at for at, size in samples if size == samples[-1][1]) - began

    @property
    def seconds_at_most(self) -> float:
        """The same, but from the last sample before the first byte: a busy machine samples late."""
        samples = list(self._samples)
        began = max(at for at, size in samples if size == 0)
        return next(at for at, size in samples if size == samples[-1][1]) - began

    def by_second(self, since: float = 0.0) -> list[float]:
        """The bytes of each whole second from the first byte, or from `since` (time.monotonic)."""
        samples = list(self._samples)
        last = next(at for at, size in reversed(samples) if size < samples[-1][1])
        began = max(since, next(at for at, size in samples if size > 0))
        sizes = [size_at(samples, began + second) for second in range(int(last - began) + 1)]
        return [after - before for before, after in pairwise(sizes)]


class Meters:
    """Samples the bytes of throttled replicas of some brokers during its `with` block, which gets a meter of
    each broker.

    side  whether to sample what a broker fetches (follower), or what it sends (leader)
    more  further proxies through which the brokers' followers fetch
    """

    def __init__(
        self, proxy: ProxyProcess, *brokers: int, side: str = "follower", more: Sequence[ProxyProcess] = ()
    ) -> None:
        self._proxies: Final = (proxy, *more)
        self._brokers: Final = brokers
        self._name: Final = f"quota_proxy_{side}_replication_throttled_bytes_total"
        self._meters: list[Meter] = []
        self._pauses: Final = Pauses()
        self._stop: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._watch)

    def __enter__(self) -> list[Meter]:
        self._pauses.__enter__()
        _, sizes = self._read()
        self._meters = [
            Meter(broker, before, self._pauses) for broker, before in zip(self._brokers, sizes, strict=True)
        ]
        self._thread.start()
        return self._meters

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._pauses.__exit__(kind, error, trace)

    def _read(self) -> tuple[float, list[float]]:
        """The time, and the bytes of each broker."""
        pages = [proxy.samples(self._name) for proxy in self._proxies]
        found = [sample for _, samples in pages for sample in samples]
        sizes = [total(found, broker=str(broker)) for broker in self._brokers]
        return statistics.fmean(at for at, _ in pages), sizes

    def _watch(self) -> None:
        while not self._stop.wait(BETWEEN_SECONDS):
            at, sizes = self._read()
            for meter, size in zip(self._meters, sizes, strict=True):
                meter.add(at, size)


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
