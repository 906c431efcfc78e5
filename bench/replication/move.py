"""Measures one reassignment on a real cluster: its rate, its effect on producers, and the moved data."""

import hashlib
import json
import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from confluent_kafka import Producer, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from bench.replication.load import PARTITIONS, LoadSamples, loaded
from proxy.demo.embedded_kafka import EmbeddedKafka

LEADER: Final = "leader"
FOLLOWER: Final = "follower"
SAMPLE_SECONDS: Final = 0.1
"""Between two samples of the moved bytes."""
FIRST_SEGMENT: Final = f"{0:020}.log"
"""The only segment of each partition: segments have 1 GiB."""
MOST_SECONDS: Final = 600.0
"""The time after which a move is given up; its figures are those until then."""


@dataclass(frozen=True)
class Plan:
    """A reassignment of all partitions of one topic."""

    topic: str
    partitions: int
    megabytes: int
    """MiB of records in the topic."""
    rate: int
    """The throttle in bytes per second."""
    sides: tuple[str, ...]
    """LEADER, FOLLOWER, or both."""
    before: tuple[tuple[int, ...], ...]
    """The replicas of the first partitions; the next ones repeat them. The first replica is the leader."""
    after: tuple[tuple[int, ...], ...]
    load: str
    """The topic that gets produce load; empty for none."""
    calm_seconds: float = 60.0
    """Seconds of produce load before the move."""

    def replicas(self, partition: int) -> tuple[int, ...]:
        """The replicas of a partition after the move."""
        return self.after[partition % len(self.after)]

    def target(self, partition: int) -> int:
        """The broker that gets a replica of a partition."""
        before = self.before[partition % len(self.before)]
        return next(broker for broker in self.replicas(partition) if broker not in before)

    @property
    def loaded_on(self) -> tuple[tuple[int, ...], ...]:
        """The replicas of partitions that take produce load during the move: on a broker that leads moved
        partitions and on one that gets replicas.
        """
        last = len(self.after) - 1
        return ((self.before[0][0], self.target(last)),)


@dataclass
class Moved:
    """The measurements of a move."""

    seconds: float = 0.0
    """From the first byte to the last."""
    by_second: list[float] = field(default_factory=list)
    """The bytes of each whole second."""
    calm: LoadSamples = field(default_factory=LoadSamples)
    """Before the move."""
    busy: LoadSamples = field(default_factory=LoadSamples)
    """During the move."""
    equal: bool = False
    """Whether the replicas' files are equal byte for byte."""

    @property
    def steady(self) -> list[float]:
        """The rates without the first second, which may contain saved tokens."""
        return self.by_second[1:]

    @property
    def mean(self) -> float:
        return statistics.mean(self.steady) if self.steady else 0.0

    @property
    def variation(self) -> float:
        """The coefficient of variation of one-second rates."""
        return statistics.pstdev(self.steady) / self.mean if self.mean else 0.0

    @property
    def most_of_five(self) -> float:
        """The largest mean of five seconds."""
        of = self.steady
        return max((sum(of[at : at + 5]) / 5 for at in range(len(of) - 4)), default=0.0)

    @property
    def slower(self) -> float:
        """The p99 of produce latency during the move, divided by the calm one."""
        return p99(self.busy) / p99(self.calm) if self.calm.produces else math.nan

    @property
    def farther(self) -> float:
        """The mean lag of in-sync replicas during the move, divided by the calm one."""
        return _mean(self.busy.lags) / _mean(self.calm.lags) if self.calm.lags else math.nan


def p99(samples: LoadSamples) -> float:
    """The p99 of produce latency in seconds."""
    seen = sorted(seconds for _, seconds in samples.produces)
    return seen[int(len(seen) * 0.99)] if seen else math.nan


def _mean(seen: Sequence[tuple[float, float]]) -> float:
    return statistics.mean(value for _, value in seen)


def make_topic(admin: AdminClient, name: str, partitions: int, on: Sequence[Sequence[int]]) -> None:
    """Create a topic whose partitions have these replicas in turn."""
    assignment = [list(on[number % len(on)]) for number in range(partitions)]
    topic = NewTopic(name, partitions, replica_assignment=assignment)
    admin.create_topics([topic])[name].result(60)


def fill(bootstrap: str, plan: Plan) -> None:
    """Produce the topic's messages of 1 KiB."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 100_000})
    for number in range(plan.megabytes * 1024):
        while True:
            try:
                producer.produce(plan.topic, bytes(1024), partition=number % plan.partitions)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    producer.flush()


def throttle(admin: AdminClient, plan: Plan, brokers: Sequence[int], on: bool) -> None:
    """Set or remove the plan's throttle on all replicas of its topic."""
    _set(
        admin,
        ResourceType.TOPIC,
        plan.topic,
        {f"{side}.replication.throttled.replicas": "*" for side in plan.sides},
        on,
    )
    for broker in brokers:
        rates = {f"{side}.replication.throttled.rate": str(plan.rate) for side in plan.sides}
        _set(admin, ResourceType.BROKER, str(broker), rates, on)


def _set(admin: AdminClient, kind: ResourceType, name: str, values: Mapping[str, str], on: bool) -> None:
    operation = AlterConfigOpType.SET if on else AlterConfigOpType.DELETE
    entries = [ConfigEntry(key, value, incremental_operation=operation) for key, value in values.items()]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(60)


class Watch:
    """Samples the bytes of the topic on the disks of the brokers that get replicas. It runs in the calm phase
    too, so that the cost of sampling is not attributed to the move.
    """

    def __init__(self, kafka: EmbeddedKafka, admin: AdminClient, plan: Plan) -> None:
        self._admin = admin
        self._plan = plan
        numbers = range(plan.partitions)
        self._files = [
            _folder(kafka, plan, number, plan.target(number)) / FIRST_SEGMENT for number in numbers
        ]
        self.samples: list[tuple[float, int]] = []
        """Times, and bytes."""

    def look(self) -> bool:
        """Sample, then pause. Return whether the move is over, which is checked from time to time."""
        self.samples.append((time.monotonic(), sum(_size(file) for file in self._files)))
        time.sleep(SAMPLE_SECONDS)
        return len(self.samples) % 10 == 0 and in_sync(self._admin, self._plan)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def equal(kafka: EmbeddedKafka, plan: Plan) -> bool:
    """Whether each new replica has the files of its leader."""
    return all(
        _digests(kafka, plan, number, plan.replicas(number)[0])
        == _digests(kafka, plan, number, plan.target(number))
        for number in range(plan.partitions)
    )


def _digests(kafka: EmbeddedKafka, plan: Plan, partition: int, broker: int) -> list[str]:
    """The checksums of a replica's files."""
    files = sorted(_folder(kafka, plan, partition, broker).glob("*.log"))
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def _folder(kafka: EmbeddedKafka, plan: Plan, partition: int, broker: int) -> Path:
    return kafka.folder / f"node-{broker}" / "data" / f"{plan.topic}-{partition}"


def in_sync(admin: AdminClient, plan: Plan) -> bool:
    """Whether the move is over: exactly the target replicas of each partition are in sync."""
    found = admin.describe_topics(TopicCollection([plan.topic]))[plan.topic].result(60)
    return all(
        {node.id for node in partition.isr} == set(plan.replicas(partition.id))
        for partition in found.partitions
    )


def move(kafka: EmbeddedKafka, bootstrap: str, plan: Plan, folder: Path) -> Moved:
    """Run the move through these bootstrap servers, and measure it. `folder`: for the file of the
    reassignment tool.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    make_topic(admin, plan.topic, plan.partitions, plan.before)
    fill(bootstrap, plan)
    moved = Moved()
    if plan.load and plan.load != plan.topic:
        make_topic(admin, plan.load, PARTITIONS, plan.loaded_on)
    with loaded(bootstrap, plan.load, moved.calm):
        calm = Watch(kafka, admin, plan)
        began = time.monotonic()
        while plan.load and time.monotonic() < began + plan.calm_seconds:
            calm.look()
    throttle(admin, plan, list(kafka.node_ids), on=True)
    file = folder / f"{plan.topic}.json"
    parts = [
        {"topic": plan.topic, "partition": number, "replicas": list(plan.replicas(number))}
        for number in range(plan.partitions)
    ]
    file.write_text(json.dumps({"version": 1, "partitions": parts}))
    watch, of_load = Watch(kafka, admin, plan), LoadSamples()
    with loaded(bootstrap, plan.load, of_load):
        began = time.monotonic()
        of_plan = ("--bootstrap-server", bootstrap, "--reassignment-json-file", str(file))
        tool = kafka.start_tool("kafka-reassign-partitions", *of_plan, "--execute")
        started = None
        while time.monotonic() < began + MOST_SECONDS:
            if watch.look():
                break
            if started is None and tool.poll() is not None:
                started = time.monotonic()
    throttle(admin, plan, list(kafka.node_ids), on=False)
    began, ended = _moving(watch.samples)
    moved.seconds = ended - began
    moved.by_second = _by_second(watch.samples, began, ended)
    # Exclude the start and end of the tool's JVM, which uses one of two cores.
    moved.busy = of_load.between(max(began, started or began), ended)
    moved.equal = in_sync(admin, plan) and equal(kafka, plan)
    admin.delete_topics([plan.topic])[plan.topic].result(60)
    return moved


def _moving(samples: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """The times of the first and the last byte."""
    began = next((at for at, moved in samples if moved), samples[0][0])
    ended = next(at for at, moved in samples if moved == samples[-1][1])
    return began, ended


def _by_second(samples: Sequence[tuple[float, int]], began: float, ended: float) -> list[float]:
    """The bytes in each whole second."""
    sums = [0.0] * (int(ended - began) + 1)
    for (_, before), (at, after) in pairwise(samples):
        if began <= at <= ended:
            sums[int(at - began)] += after - before
    return sums[:-1]
