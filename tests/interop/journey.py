"""Messages through the proxy and back, by one client, and what became of them."""

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proxy.demo.children import Children, reap
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.interop.clients import Client
from tests.support.kafka.topics import make_topic, read_log
from tests.support.messages import numbered
from tests.support.messages.requests import values
from tests.support.process.proxy_process import ProxyProcess

PARTITIONS: Final = 3
PATIENCE: Final = 180.0  # seconds


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent, and the quota of bytes per second for each direction; None: as fast as it goes.

    rejected_beyond: the bytes per second of each partition beyond which the proxy rejects what comes.
    """

    name: str
    count: int
    size: int
    quota: int | None
    rejected_beyond: int | None = None

    @property
    def bytes(self) -> int:
        return self.count * self.size


@dataclass(frozen=True, slots=True)
class Leg:
    """One direction of a journey."""

    verb: str
    seconds: float
    """Produce: of the whole command; consume: from the first message to the last."""
    throttle_seconds: float
    """What the proxy counted."""
    waits: list[int]
    """Each throttle_time_ms that the client noticed."""


class Journey:
    """One client, one load."""

    def __init__(
        self, kafka: EmbeddedKafka, proxy: ProxyProcess, client: Client, load: Load, folder: Path
    ) -> None:
        self._kafka = kafka
        self._proxy = proxy
        self._client = client
        self._load = load
        self._folder = folder
        self._children = Children()
        self.client_id = f"{client.name}-{load.name}".lower()

    def run(self) -> list[Leg]:
        """Both directions. AssertionError says what is wrong: a message, the pace, or the client's end."""
        topic = self.client_id
        make_topic(self._kafka, topic, PARTITIONS)
        try:
            legs = [self._produce(topic), self._consume(topic)]
        finally:
            self._children.kill_all()
        for leg in legs:
            self._check_pace(leg)
        rejected = self._proxy.metric("quota_proxy_rejected_requests_total", topic=topic)
        assert (rejected > 0) is (self._load.rejected_beyond is not None), f"{rejected} requests rejected"
        return legs

    def _produce(self, topic: str) -> Leg:
        lines = self._folder / f"{self.client_id}.messages"
        with lines.open("wb") as file:
            for number in range(self._load.count):
                value = numbered.value(number, self._load.size)
                file.write(b"%b %b\n" % (numbered.key(number), value))
        started = time.monotonic()
        command = self._client.produce(self._proxy.bootstrap, self.client_id, topic)
        with self._running(command, lines) as process:
            output, _ = process.communicate()
            seconds = time.monotonic() - started
        assert output == "", output
        in_log = Counter(
            numbered.number(value)
            for partition in range(PARTITIONS)
            for records in read_log(self._kafka, topic, partition)
            for value in values(records)
        )
        assert in_log == Counter(range(self._load.count)), "the log does not have each message once"
        return self._leg("produce", seconds, "producer_byte_rate")

    def _consume(self, topic: str) -> Leg:
        got: list[numbered.Got] = []
        times: list[float] = []
        command = self._client.consume(
            self._proxy.bootstrap, self.client_id, topic, self.client_id, self._load.count
        )
        with self._running(command) as process:
            assert process.stdout is not None
            for line in process.stdout:
                times.append(time.monotonic())
                partition, offset, key, value = line.split()
                got.append(numbered.Got(int(partition), int(offset), key.encode(), value.encode()))
        numbered.check_all_there(got, self._load.count)
        assert all(len(message.value) == self._load.size for message in got), "a message is cut short"
        return self._leg("consume", times[-1] - times[0], "consumer_byte_rate")

    @contextmanager
    def _running(self, command: list[str], stdin: Path | None = None) -> Iterator[subprocess.Popen[str]]:
        """The client's process, which has to end by itself, and well."""
        with self._errors.open("wb") as errors, (stdin or Path("/dev/null")).open("rb") as input:
            process = self._children.spawn(command, stdin=input, stdout=subprocess.PIPE, stderr=errors)
        killer = threading.Timer(PATIENCE, process.kill)
        killer.start()
        try:
            yield process
            status = process.wait()
            assert status == 0, f"{command[0]} ended with status {status} after: {self._said()[-2000:]}"
        finally:
            killer.cancel()
            reap(process)

    @property
    def _errors(self) -> Path:
        return self._folder / f"{self.client_id}.err"

    def _said(self) -> str:
        return self._errors.read_text(errors="replace")

    def _leg(self, verb: str, seconds: float, kind: str) -> Leg:
        waited = sum(
            bucket["throttle_seconds"]
            for bucket in self._proxy.buckets()
            if bucket["kind"] == kind and bucket["entity"].get("client-id") == self.client_id
        )
        return Leg(verb, seconds, waited, self._client.waits(self._said()))

    def _check_pace(self, leg: Leg) -> None:
        """Neither faster nor slower than the quota.

        One second's worth is saved up at first, and nobody waits for what the last request, of a mebibyte at
        most, has cost.
        """
        quota = self._load.quota
        if quota is None:
            assert leg.throttle_seconds == 0, f"{leg.verb}: throttled without a quota"
            return
        least = (self._load.bytes - quota - (1 << 20)) / quota
        most = self._load.bytes / quota * 1.15 + 3.0
        assert least <= leg.seconds <= most, (
            f"{leg.verb} took {leg.seconds:.1f} s, which should be {least:.1f} to {most:.1f} s"
        )
        assert leg.throttle_seconds > 0, f"{leg.verb}: never throttled"
