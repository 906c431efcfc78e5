"""Measures produce latency and replica lag during a move: `python -m bench.replication.load BOOTSTRAP TOPIC`.

It prints `ready`, runs until its input ends, and prints the samples as one line of JSON. It is a process of
its own, so that it shares no interpreter with the measurement of the move.
"""

import asyncio
import itertools
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.offset import OffsetRequest
from confluent_kafka import Producer

ROOT: Final = Path(__file__).parents[2]
PARTITIONS: Final = 4
"""Partitions of the topic under load, which have one leader."""
PRODUCE_EVERY_SECONDS: Final = 0.01
"""Between two messages of 1 KiB."""
WARM_UP: Final = 400
"""Warm-up messages: the first ones wait for connections, and for followers of new partitions."""
WATCH_SECONDS: Final = (0.02, 0.06)
"""Bounds of the random time between two samples of the lag, so that they are independent of the messages."""
GIVE_UP_MS: Final = 10_000
"""How long the process survives brokers that were killed with a run."""
_LOG_END: Final = -2
"""The debugging replica id of ListOffsets: the latest offset is then the log end offset. With -1, a consumer,
it is the high watermark.
"""
_CONSUMER: Final = -1
_LATEST: Final = -1


@dataclass
class LoadSamples:
    """What clients and replicas experience, each sample with its monotonic time."""

    produces: list[tuple[float, float]] = field(default_factory=list)
    """The time of each message (acks=all), and the seconds until its response."""
    lags: list[tuple[float, float]] = field(default_factory=list)
    """The lag of the slowest in-sync replicas in messages, summed over partitions."""

    def between(self, began: float, ended: float) -> "LoadSamples":
        """Return the samples between two monotonic times."""
        return LoadSamples(
            [each for each in self.produces if began <= each[0] <= ended],
            [each for each in self.lags if began <= each[0] <= ended],
        )


@contextmanager
def loaded(bootstrap: str, topic: str, samples: LoadSamples) -> Iterator[None]:
    """Run the load on a topic while the block runs, after a warm-up; then `samples` is filled."""
    if not topic:
        yield
        return
    command = [sys.executable, "-m", "bench.replication.load", bootstrap, topic]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        said, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed; its messages are above")
    found = json.loads(said)
    samples.produces = [(began, seconds) for began, seconds in found["produces"]]
    samples.lags = [(at, messages) for at, messages in found["lags"]]


def produce(producer: Producer, topic: str, samples: LoadSamples, over: threading.Event) -> None:
    """Send messages at a fixed rate, regardless of responses."""
    due = time.monotonic()
    numbers = itertools.count()
    while not over.is_set():
        began = time.monotonic()
        if began < due:
            # Record responses as they arrive, not only at the next message.
            producer.poll(due - began)
            continue
        due += PRODUCE_EVERY_SECONDS

        def came(*_: object, began: float = began) -> None:
            samples.produces.append((began, time.monotonic() - began))

        producer.produce(topic, bytes(1024), partition=next(numbers) % PARTITIONS, on_delivery=came)
    producer.flush()


async def watch(bootstrap: str, topic: str, samples: LoadSamples, over: threading.Event) -> None:
    """Sample the log end offset less the high watermark, which all in-sync replicas have reached."""
    client = AIOKafkaClient(bootstrap_servers=bootstrap)
    await client.bootstrap()
    try:
        metadata = await client.fetch_all_metadata()
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        (leader,) = {metadata.leader_for_partition(partition) for partition in partitions}
        while not over.is_set():
            ends = asyncio.ensure_future(_latest(client, leader, topic, _LOG_END))
            marks = await _latest(client, leader, topic, _CONSUMER)
            # The log end offset is read first: messages in between can only reduce the lag.
            samples.lags.append((time.monotonic(), float(max(0, await ends - marks))))
            await asyncio.sleep(random.uniform(*WATCH_SECONDS))
    finally:
        await client.close()


async def _latest(client: AIOKafkaClient, leader: int, topic: str, replica_id: int) -> int:
    """The sum of the latest offsets of the partitions."""
    partitions = [(number, _LATEST) for number in range(PARTITIONS)]
    response = await client.send(leader, OffsetRequest(replica_id, 0, [(topic, partitions)]))
    return sum(offset for _, found in response.topics for _, _, _, offset in found)


def main() -> None:
    """Run the command."""
    bootstrap, topic = sys.argv[1:]
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "linger.ms": 0,
            "message.timeout.ms": GIVE_UP_MS,
        }
    )
    for number in range(WARM_UP):
        producer.produce(topic, bytes(1024), partition=number % PARTITIONS)
    producer.flush()
    samples, over = LoadSamples(), threading.Event()

    def until_told() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=until_told, daemon=True).start()
    producing = threading.Thread(target=produce, args=(producer, topic, samples, over))
    producing.start()
    print("ready", flush=True)
    try:
        asyncio.run(watch(bootstrap, topic, samples, over))
    finally:
        over.set()
        producing.join()
    print(json.dumps({"produces": samples.produces, "lags": samples.lags}))


if __name__ == "__main__":
    main()
