"""One reassignment: its plan, what is measured of it, and the files that it moves."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.replication import move as replication_move
from bench.replication.kip_73 import ONE_TO_TWO, TWO_TO_ONE
from bench.replication.load import LoadSamples
from bench.replication.move import (
    FIRST_SEGMENT,
    FOLLOWER,
    LEADER,
    Moved,
    Plan,
    Watch,
    _by_second,
    _moving,
    equal,
    in_sync,
    p99,
    throttle,
)

PLAN = Plan("t", 2, 40, 4 << 20, (LEADER,), ((1, 2),), ((1, 3),), "")


def test_a_plan_moves_to_the_broker_that_is_new() -> None:
    assert PLAN.target(0) == PLAN.target(1) == 3
    assert PLAN.loaded_on == ((1, 3),)


def test_partitions_take_the_replicas_in_turn() -> None:
    out, back = (replace(PLAN, before=before, after=after) for before, after in (ONE_TO_TWO, TWO_TO_ONE))
    assert [(out.replicas(number)[0], out.target(number)) for number in range(3)] == [(1, 2), (1, 3), (1, 2)]
    assert [(back.replicas(number)[0], back.target(number)) for number in range(3)] == [
        (1, 3),
        (2, 3),
        (1, 3),
    ]
    assert out.loaded_on == back.loaded_on == ((1, 3),)


def test_seconds_count_from_the_first_byte_to_the_last() -> None:
    samples = [(0.0, 0), (1.0, 0), (2.0, 10), (2.5, 15), (3.1, 30), (4.2, 50), (9.0, 50)]
    began, ended = _moving(samples)
    assert began == 2.0
    assert ended == pytest.approx(4.2)
    assert _by_second(samples, began, ended) == [15, 15]


def test_the_first_second_does_not_count() -> None:
    moved = Moved(10.0, [99.0, 10.0, 20.0, 10.0, 20.0, 10.0, 20.0])
    assert moved.mean == 15.0
    assert moved.variation == pytest.approx(1 / 3)
    assert moved.most_of_five == 16.0


def test_a_move_without_samples_has_no_figures() -> None:
    moved = Moved()
    assert (moved.mean, moved.variation, moved.most_of_five) == (0.0, 0.0, 0.0)
    assert math.isnan(moved.slower)
    assert math.isnan(moved.farther)
    assert math.isnan(p99(LoadSamples()))


def test_the_load_is_compared_with_the_calm_before() -> None:
    calm = LoadSamples([(0.0, 0.01)] * 100, [(0.0, 1.0), (0.1, 3.0)])
    busy = LoadSamples([(0.0, 0.01)] * 98 + [(0.0, 0.05)] * 2, [(0.0, 3.0)])
    moved = Moved(calm=calm, busy=busy)
    assert moved.slower == pytest.approx(5.0)
    assert moved.farther == pytest.approx(1.5)


class Kafka:
    """A cluster's folders, in which partition 0 and 1 have moved to broker 3."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for broker in (1, 3):
            for partition in range(2):
                self.file(broker, partition).parent.mkdir(parents=True)
                self.file(broker, partition).write_bytes(bytes([partition]) * 10)

    def file(self, broker: int, partition: int) -> Path:
        return self.folder / f"node-{broker}" / "data" / f"t-{partition}" / FIRST_SEGMENT


@pytest.fixture
def kafka(tmp_path: Path) -> Kafka:
    return Kafka(tmp_path)


def test_replicas_are_equal_byte_for_byte(kafka: Kafka) -> None:
    assert equal(cast("Any", kafka), PLAN)
    kafka.file(3, 1).write_bytes(bytes([1]) * 9 + b"x")
    assert not equal(cast("Any", kafka), PLAN)


def test_samples_are_the_bytes_at_the_target(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the move is over is asked at every tenth sample."""
    asked: list[Plan] = []

    def over(admin: Any, plan: Plan) -> bool:
        asked.append(plan)
        return True

    monkeypatch.setattr(replication_move, "SAMPLE_SECONDS", 0.0)
    monkeypatch.setattr(replication_move, "in_sync", over)
    watch = Watch(cast("Any", kafka), cast("Any", None), PLAN)
    kafka.file(3, 1).unlink()
    assert [watch.look() for _ in range(10)] == [False] * 9 + [True]
    assert [size for _, size in watch.samples] == [10] * 10
    assert asked == [PLAN]


class Admin:
    """An admin client: the ISR of each partition, and the configs that are altered."""

    def __init__(self, *isr: set[int]) -> None:
        partitions = [
            SimpleNamespace(id=number, isr=[SimpleNamespace(id=node) for node in nodes])
            for number, nodes in enumerate(isr)
        ]
        self._topic = SimpleNamespace(result=lambda seconds: SimpleNamespace(partitions=partitions))
        self.altered: list[tuple[str, dict[str, tuple[str, str]]]] = []

    def describe_topics(self, topics: Any) -> dict[str, Any]:
        return {"t": self._topic}

    def incremental_alter_configs(self, resources: list[Any]) -> dict[Any, Any]:
        for resource in resources:
            entries = {
                entry.name: (entry.incremental_operation.name, entry.value)
                for entry in resource.incremental_configs
            }
            self.altered.append((resource.name, entries))
        return {resource: SimpleNamespace(result=lambda seconds: None) for resource in resources}


def test_a_move_is_over_when_the_isr_is_that_of_the_plan() -> None:
    assert in_sync(cast("Any", Admin({1, 3}, {3, 1})), PLAN)
    assert not in_sync(cast("Any", Admin({1, 3}, {1})), PLAN)
    assert not in_sync(cast("Any", Admin({1, 2, 3}, {1, 3})), PLAN)


def test_a_throttle_is_of_the_plans_sides() -> None:
    admin = Admin()
    plan = replace(PLAN, sides=(LEADER, FOLLOWER))
    throttle(cast("Any", admin), plan, [1, 2], on=True)
    rates = {f"{side}.replication.throttled.rate": ("SET", str(PLAN.rate)) for side in plan.sides}
    replicas = {f"{side}.replication.throttled.replicas": ("SET", "*") for side in plan.sides}
    assert admin.altered == [("t", replicas), ("1", rates), ("2", rates)]
    admin.altered.clear()
    throttle(cast("Any", admin), PLAN, [1], on=False)
    assert [set(entries) for _, entries in admin.altered] == [
        {"leader.replication.throttled.replicas"},
        {"leader.replication.throttled.rate"},
    ]
    assert {operation for _, entries in admin.altered for operation, _ in entries.values()} == {"DELETE"}
