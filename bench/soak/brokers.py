"""brokers: under load, one of three brokers joins, one is killed, one hangs, and one moves to another
port.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from bench.soak.delivered import Group, check_read, check_stored
from bench.soak.scenario import Outcome, Run, Scenario
from bench.soak.stalls import longest_gap, percentiles
from bench.soak.writers import FLUSH_SECONDS, JavaWriter, LibrdkafkaWriter, Writer, go_on, running
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import Confluent
from tests.support.kafka.topics import make_topic, read_log
from tests.support.messages.requests import leader_epochs
from tests.support.process.proxy_process import ProxyProcess
from tests.support.waiting import wait_until

ROUNDS: Final = 5
"""How often a broker hangs, is killed and moves, in this order."""
HANG_SECONDS: Final = 5.0
SHORT_HANG_SECONDS: Final = 1.0
"""For how long a broker hangs in a fault; the second is that of a short run."""
PARTITIONS: Final = 6
TENANT: Final = "soak-tenant"
QUOTA: Final = 256 << 10
"""The tenant's quota, in bytes per second at each broker."""
BURST_SECONDS: Final = 2.0
"""What a broker that begins to lead the tenant's partition may accept at once, in seconds of the quota: the
burst, and the request that exceeds it. Each broker has a bucket of its own.
"""
BATCH_BYTES: Final = 100_000
"""The size of the tenant's requests: less than half a second of the quota."""


class Tenant:
    """Sends as much as its quota allows to one partition while the block runs, and counts the delivered
    bytes.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer: Final = Confluent().producer(
            bootstrap,
            client_id=TENANT,
            batch_size=BATCH_BYTES,
            queue_buffering_max_messages=100,
            message_timeout_ms=300_000,
        )
        self._topic: Final = topic
        self._over: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._run)
        self._started = 0.0
        self.bytes = 0
        self.seconds = 0.0

    def _delivered(self, error: Any, message: Any) -> None:
        if not error:
            self.bytes += len(message)

    def _run(self) -> None:
        while not self._over.is_set():
            with suppress(BufferError):
                self._producer.produce(self._topic, bytes(10_000), partition=0, on_delivery=self._delivered)
                continue
            self._producer.poll(0.1)
        self._producer.poll(0)
        self.seconds = time.monotonic() - self._started

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._producer.purge()
        # Reports that wait keep the producer, which then tries to connect for as long as the process runs.
        self._producer.flush(FLUSH_SECONDS)


class Faults:
    """The faults of brokers. Each method returns when its fault is over."""

    def __init__(
        self, kafka: EmbeddedKafka, proxy: ProxyProcess, writers: list[Writer], *, short: bool
    ) -> None:
        self._kafka: Final = kafka
        self._proxy: Final = proxy
        self._writers: Final = writers
        self._short: Final = short

    def of_a_run(self, rounds: int) -> list[Callable[[], None]]:
        """Return the faults of a run in their order. A short run has those that take seconds."""
        if self._short:
            return [self.hang, self.move]
        return [self.join, *(fault for _ in range(rounds) for fault in (self.hang, self.kill, self.move))]

    def join(self) -> None:
        """Start a broker that the proxy does not know, and let it lead partitions."""
        self._kafka.start(3)
        wait_until(lambda: self._proxy.listens_for(3), "the port of the broker that joined")
        self.lead()

    def lead(self) -> None:
        """Elect the preferred leaders, unless the run is short."""
        if self._short:
            return
        of_server = ("--bootstrap-server", self._kafka.bootstrap)
        self._kafka.run_tool(
            "kafka-leader-election", *of_server, "--election-type", "preferred", "--all-topic-partitions"
        )

    def kill(self) -> None:
        """Kill a broker, and start it when clients have continued without it."""
        self._kafka.kill(2)
        go_on(self._writers)
        self._kafka.start(2)
        self.lead()

    def hang(self) -> None:
        """Stop a broker with SIGSTOP for some seconds."""
        os.kill(self._kafka.pid(1), signal.SIGSTOP)
        try:
            time.sleep(SHORT_HANG_SECONDS if self._short else HANG_SECONDS)
        finally:
            os.kill(self._kafka.pid(1), signal.SIGCONT)

    def move(self) -> None:
        """Shut down a broker, and start it at another port."""
        self._kafka.stop(3)
        self._kafka.move(3)
        self._kafka.start(3)
        port = self._kafka.port(3)
        wait_until(lambda: self._proxy.log_lines(f"broker 3 is .*:{port}$"), "the proxy's noticing")
        self.lead()


def run(run: Run) -> Outcome:
    """Cause the faults one after the other, and count lost and doubled messages."""
    outcome = Outcome()
    kafka = run.kafka
    names = ("librdkafka",) if run.short else ("librdkafka", "java")
    topics = [f"soak-brokers-{name}" for name in (*names, "tenant")]
    for topic in topics:
        make_topic(kafka, topic, PARTITIONS, 3, min_insync_replicas=2)
    proxy = ProxyProcess(run.folder / "brokers", kafka.bootstrap, _quotas())
    stalls: dict[str, list[float]] = {}
    if not run.short:
        kafka.stop(3)
    with proxy:
        writers: list[Writer] = [LibrdkafkaWriter(kafka, proxy.bootstrap, topics[0])]
        if not run.short:
            writers.append(JavaWriter(kafka, proxy.bootstrap, topics[1]))
        faults = Faults(kafka, proxy, writers, short=run.short)
        with Group(proxy.bootstrap, topics[0]) as group:
            with Tenant(proxy.bootstrap, topics[-1]) as tenant, running(writers):
                for fault in faults.of_a_run(run.amount(ROUNDS, 1)):
                    _cause(fault, writers, stalls)
            read = check_read(group, writers[0], outcome)
        complaints = proxy.log_lines("Traceback")
    leaders = _leaders(kafka, topics[-1])
    allowed = QUOTA * (tenant.seconds + leaders * BURST_SECONDS)
    outcome.check(
        tenant.bytes <= allowed, f"the tenant sent {tenant.bytes} bytes, and {allowed:.0f} are allowed"
    )
    outcome.check(tenant.bytes > 0, "the tenant sent nothing")
    outcome.check(not complaints, f"the proxy's log has errors: {complaints[:1]}")
    outcome.figures = {
        "delivered": {each.name: check_stored(kafka, each, outcome) for each in writers},
        "group": read,
        "tenant": {
            "quota_share": round(tenant.bytes / tenant.seconds / QUOTA, 3),
            "seconds": tenant.seconds,
            "leaders": leaders,
        },
        "stall_seconds": {name: percentiles(found) for name, found in stalls.items()},
    }
    return outcome


def _leaders(kafka: EmbeddedKafka, topic: str) -> int:
    """How often a broker became the leader of the topic's first partition and appended to it."""
    return len({epoch for records in read_log(kafka, topic) for epoch in leader_epochs(records)})


def _quotas() -> list[Mapping[str, object]]:
    return [{"entity": {"client-id": TENANT}, "producer_byte_rate": QUOTA}]


def _cause(fault: Callable[[], None], writers: list[Writer], stalls: dict[str, list[float]]) -> None:
    """Cause one fault, wait until every writer continues, and record how long each has stalled."""
    started = time.monotonic()
    fault()
    go_on(writers)
    ended = time.monotonic()
    for writer in writers:
        stall = longest_gap(writer.done.times, started, ended)
        stalls.setdefault(f"{fault.__name__}, {writer.name}", []).append(stall)


SCENARIO: Final = Scenario("brokers", "brokers join, are killed, hang and move", run, brokers=3)
