"""Faults of brokers: their order, what each does, and how long writers stall."""

import os
import signal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.soak import brokers
from bench.soak.brokers import Faults, Tenant, _cause


class Kafka:
    """A cluster that notes what is done to it."""

    bootstrap = "host:1"

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def __getattr__(self, name: str) -> Any:
        if name == "pid":
            return lambda node_id: 4000 + node_id
        if name == "port":
            return lambda node_id: 9000 + node_id
        return lambda *arguments: self.calls.append((name, *arguments[:2]))


class Proxy:
    """The proxy's log, and whether it listens for a broker each time that this is asked."""

    def __init__(self, *listens: bool) -> None:
        self.listens = list(listens)
        self.patterns: list[str] = []

    def listens_for(self, node_id: int) -> bool:
        assert node_id == 3
        return self.listens.pop(0)

    def log_lines(self, pattern: str) -> list[str]:
        self.patterns.append(pattern)
        return ["noticed"]


ELECTION = ("run_tool", "kafka-leader-election", "--bootstrap-server")


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    made = Kafka()
    monkeypatch.setattr(brokers, "go_on", lambda writers: made.calls.append(("go on",)))
    monkeypatch.setattr(os, "kill", lambda pid, number: made.calls.append((number, pid)))
    monkeypatch.setattr(brokers, "HANG_SECONDS", 0.0)
    monkeypatch.setattr(brokers, "SHORT_HANG_SECONDS", 0.0)
    return made


def faults(kafka: Kafka, proxy: Proxy, *, short: bool = False) -> Faults:
    return Faults(cast("Any", kafka), cast("Any", proxy), [], short=short)


def test_a_broker_joins_once_and_each_round_has_each_other_fault(kafka: Kafka) -> None:
    all_of_them = faults(kafka, Proxy())
    names = [fault.__name__ for fault in all_of_them.of_a_run(2)]
    assert names == ["join", "hang", "kill", "move", "hang", "kill", "move"]
    short = faults(kafka, Proxy(), short=True)
    assert [fault.__name__ for fault in short.of_a_run(2)] == ["hang", "move"]


def test_a_killed_broker_starts_when_clients_go_on_without_it(kafka: Kafka) -> None:
    faults(kafka, Proxy()).kill()
    assert kafka.calls == [("kill", 2), ("go on",), ("start", 2), ELECTION]


@pytest.mark.parametrize("short", [True, False])
def test_a_broker_that_hangs_goes_on(kafka: Kafka, short: bool) -> None:
    faults(kafka, Proxy(), short=short).hang()
    assert kafka.calls == [(signal.SIGSTOP, 4001), (signal.SIGCONT, 4001)]


def test_a_broker_moves_to_another_port_which_the_proxy_notices(kafka: Kafka) -> None:
    proxy = Proxy()
    faults(kafka, proxy).move()
    assert kafka.calls == [("stop", 3), ("move", 3), ("start", 3), ELECTION]
    assert ":9003" in proxy.patterns[0]


def test_a_short_run_leaves_the_leaders_as_they_are(kafka: Kafka) -> None:
    faults(kafka, Proxy(), short=True).move()
    assert ELECTION not in kafka.calls


def test_a_broker_has_joined_when_the_proxy_listens_for_it(kafka: Kafka) -> None:
    proxy = Proxy(False, True)
    faults(kafka, proxy).join()
    assert proxy.listens == []
    assert kafka.calls == [("start", 3), ELECTION]


def test_a_stall_is_noted_by_fault_and_writer(kafka: Kafka) -> None:
    writer = SimpleNamespace(name="client", done=SimpleNamespace(times=[]))
    stalls: dict[str, list[float]] = {}
    cluster = faults(kafka, Proxy())
    for _ in range(2):
        _cause(cluster.hang, cast("Any", [writer]), stalls)
    assert stalls.keys() == {"hang, client"}
    assert len(stalls["hang, client"]) == 2


def test_a_tenant_counts_what_was_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its producer takes two messages, then its queue is full; one of the two fails."""
    sent: list[Any] = []

    def produce(topic: str, value: bytes, *, partition: int, on_delivery: Any) -> None:
        if len(sent) == 2:
            raise BufferError
        sent.append((value, on_delivery))

    def poll(seconds: float) -> None:
        for place, (value, on_delivery) in enumerate(sent):
            on_delivery("failed" if place else None, value)
        sent.clear()
        tenant._over.set()

    flushed: list[float] = []
    producer = SimpleNamespace(produce=produce, poll=poll, purge=sent.clear, flush=flushed.append)
    made = SimpleNamespace(producer=lambda bootstrap, **settings: producer)
    monkeypatch.setattr(brokers, "Confluent", lambda: made)
    tenant = Tenant("host:1", "t")
    with tenant:
        tenant._thread.join()
    assert tenant.bytes == 10_000
    assert tenant.seconds > 0
    assert len(flushed) == 1, "the reports that are left are taken"
