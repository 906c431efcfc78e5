"""The load beside a move: produce latency, and the lag of in-sync replicas."""

import asyncio
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.replication import load as replication_load
from bench.replication.load import PARTITIONS, LoadSamples, loaded, produce, watch


def test_what_was_felt_is_cut_to_the_move() -> None:
    samples = LoadSamples([(1.0, 0.1), (2.0, 0.2), (3.0, 0.3)], [(0.5, 1.0), (2.5, 2.0)])
    assert samples.between(2.0, 2.9) == LoadSamples([(2.0, 0.2)], [(2.5, 2.0)])


def test_without_a_topic_there_is_no_load() -> None:
    samples = LoadSamples()
    with loaded("nowhere:1", "", samples):
        pass
    assert samples == LoadSamples()


SAYS = """
import sys
print("ready", flush=True)
sys.stdin.read()
print('{"produces": [[1.5, 0.25]], "lags": [[2.5, 7.0]]}')
sys.exit(STATUS)
"""


@pytest.mark.parametrize("status", [0, 3])
def test_the_process_tells_its_samples(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    popen = subprocess.Popen

    def start(command: list[str], **options: Any) -> Any:
        assert command[-2:] == ["host:1", "t"]
        return popen([sys.executable, "-c", SAYS.replace("STATUS", str(status))], **options)

    monkeypatch.setattr(subprocess, "Popen", start)
    samples = LoadSamples()
    if status:
        with pytest.raises(RuntimeError, match="host:1 t"), loaded("host:1", "t", samples):
            pass
        return
    with loaded("host:1", "t", samples):
        assert samples == LoadSamples()
    assert samples == LoadSamples([(1.5, 0.25)], [(2.5, 7.0)])


def test_messages_are_sent_to_every_partition() -> None:
    """The producer responds to a message when it is polled; the test ends after twelve."""
    samples, over = LoadSamples(), threading.Event()
    sent: list[int] = []
    waiting: list[Any] = []

    def poll(seconds: float) -> None:
        while waiting:
            waiting.pop(0)()
        if len(sent) >= 12:
            over.set()

    def take(topic: str, value: bytes, *, partition: int, on_delivery: Any) -> None:
        assert (topic, len(value)) == ("t", 1024)
        sent.append(partition)
        waiting.append(on_delivery)

    producer = SimpleNamespace(produce=take, poll=poll, flush=lambda: poll(0))
    produce(cast("Any", producer), "t", samples, over)
    assert sent == [number % PARTITIONS for number in range(len(sent))]
    assert len(samples.produces) == len(sent)
    assert all(seconds >= 0 for _, seconds in samples.produces)
    times = [began for began, _ in samples.produces]
    assert times == sorted(times)


class Client:
    """A client of a cluster whose log ends grow by one message each time, and whose marks lag two behind."""

    closed = 0

    def __init__(self, over: threading.Event, samples: int) -> None:
        self.end = 100
        self._over = over
        self._samples = samples

    async def bootstrap(self) -> None:
        pass

    async def fetch_all_metadata(self) -> Any:
        return SimpleNamespace(leader_for_partition=lambda partition: 1)

    async def send(self, leader: int, request: Any) -> Any:
        assert leader == 1
        replica_id, _, ((topic, partitions),) = request.replica_id, None, request.topics
        offset = self.end if replica_id == -2 else self.end - 2
        if replica_id == -2:
            self.end += 1
            self._samples -= 1
            if not self._samples:
                self._over.set()
        return SimpleNamespace(topics=[(topic, [(number, 0, 0, offset) for number, _ in partitions])])

    async def close(self) -> None:
        self.closed += 1


def test_the_lag_is_the_log_end_less_the_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    samples, over = LoadSamples(), threading.Event()
    client = Client(over, 3)
    requests: list[Any] = []

    def request(replica_id: int, isolation: int, topics: Any) -> Any:
        requests.append(replica_id)
        return SimpleNamespace(replica_id=replica_id, topics=topics)

    monkeypatch.setattr(replication_load, "AIOKafkaClient", lambda bootstrap_servers: client)
    monkeypatch.setattr(replication_load, "OffsetRequest", request)
    asyncio.run(watch("host:1", "t", samples, over))
    assert len(samples.lags) == 3
    assert all(0 <= lag <= 2 * PARTITIONS for _, lag in samples.lags)
    assert {-1, -2} == set(requests)
    assert client.closed == 1
