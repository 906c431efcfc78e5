"""Reassignment: KIP-73's formulas, by hand."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from pipeline.errors import InputError
from pipeline.transforms.reassignment import Cluster, Move, Partition, plan
from tests.support.messages.usage_events import make_event, write_lines

GIB = 1 << 30
CLUSTER = Cluster(
    [1, 2, 3],
    [
        Partition("t", 0, [1, 2], 6 * GIB, 50_000),
        Partition("t", 1, [2, 3], 3 * GIB, 20_000),
        Partition("t", 2, [3, 1], 3 * GIB, 10_000),
        Partition("u", 0, [1], 0, 5_000),
    ],
    [Move("t", 0, [2, 3]), Move("t", 1, [3, 2])],
)
"""Broker 1 takes in 65,000 B/s, 2 70,000, 3 30,000. One of four partitions moves: a new leader moves none."""


def test_the_formulas() -> None:
    found = plan(CLUSTER, throttle=10_000_000, network=50_000_000)
    assert found.move_ratio == 0.25
    assert found.bytes_to_move == 6 * GIB
    assert found.throttle_min == 70_000
    assert found.throttle_max == 50_000_000 - 70_000 / 2
    # Mean of the brokers' log sizes: (9 + 9 + 6) / 3 GiB = 8 GiB.
    assert found.move_seconds == pytest.approx(0.25 * 8 * GIB * 3 / (10_000_000 - 70_000))
    assert (found.feasible, found.reason) == (True, "")
    assert found.fetch_response_max_bytes == 11 * 10_000_000 - 1


def test_the_throttle_that_ends_in_time() -> None:
    found = plan(CLUSTER, within=600)
    assert found.throttle == -(-(70_000 * 600 + 6 * GIB) // 600)
    assert found.move_seconds == pytest.approx(600, rel=1e-6)
    assert found.feasible
    assert found.throttle_max is None


def test_an_hour_where_nothing_is_asked_for() -> None:
    assert plan(CLUSTER).move_seconds == pytest.approx(3600, rel=1e-6)


def test_a_throttle_below_the_inbound_rate_never_ends() -> None:
    found = plan(CLUSTER, throttle=70_000)
    assert (found.feasible, found.move_seconds) == (False, None)
    assert "never ends: 70,000 B/s is not above the 70,000 B/s that broker 2 takes in" in found.reason


def test_a_throttle_that_the_network_does_not_carry() -> None:
    found = plan(CLUSTER, within=60, network=1_000_000)
    assert not found.feasible
    assert "is not below the 965,000 B/s that the network leaves to broker 2" in found.reason


def test_a_throttle_that_takes_too_long() -> None:
    found = plan(CLUSTER, throttle=1_000_000, within=60)
    assert not found.feasible
    assert "longer than the 60 s asked for" in found.reason


def test_nothing_to_move() -> None:
    found = plan(Cluster([1, 2], [Partition("t", 0, [1], 100, 0)], []), within=10)
    assert (found.move_ratio, found.bytes_to_move, found.move_seconds) == (0.0, 0, 0.0)


@pytest.mark.parametrize(
    ("move", "sentence"),
    [
        (Move("x", 0, [1]), "x-0 is to move, but is no partition"),
        (Move("t", 0, [1, 9]), "t-0 is to move to 9, which is no broker"),
    ],
)
def test_moves_that_do_not_fit(move: Move, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        plan(Cluster(CLUSTER.brokers, CLUSTER.partitions, [move]))


FILE: dict[str, Any] = {
    "brokers": [1, 2, 3],
    "partitions": [
        {"topic": "t", "partition": 0, "replicas": [1, 2], "bytes": 1073741824, "bytes_in_rate": 50000}
    ],
    "moves": [{"topic": "t", "partition": 0, "replicas": [2, 3]}],
}


def test_the_job(run_job: Callable[..., Result], tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(FILE))
    result = run_job("reassign", "--cluster", file, "--within", "100", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "out/plan.json").read_text())
    assert found["throttle"] == 50_000 + -(-2 * GIB // 100)
    assert f"--throttle {found['throttle']} moves 1,073,741,824 bytes and takes 100 s" in result.output


def test_inbound_rates_out_of_events(run_job: Callable[..., Result], tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(FILE))
    lines = write_lines(tmp_path / "events.jsonl", [make_event(topic="t", bytes_in=7_000_000)])
    options = ("--cluster", file, "--throttle", "600000", "--events", lines)
    result = run_job("reassign", *options, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "out/plan.json").read_text())
    assert (found["throttle_min"], found["feasible"]) == (700_000, False)
    assert "Not feasible: it never ends" in result.output


def test_moves_in_a_file_of_their_own(run_job: Callable[..., Result], tmp_path: Path) -> None:
    cluster, moves = tmp_path / "cluster.json", tmp_path / "moves.json"
    cluster.write_text(json.dumps({name: FILE[name] for name in ("brokers", "partitions")}))
    partitions = [{"topic": "t", "partition": 0, "replicas": [3], "log_dirs": ["any"]}]
    moves.write_text(json.dumps({"version": 1, "partitions": partitions}))
    options = ("--cluster", cluster, "--moves", moves)
    assert run_job("reassign", *options, "--out", tmp_path).exit_code == 0
    assert json.loads((tmp_path / "plan.json").read_text())["bytes_to_move"] == GIB


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ('{"brokers": []}', (), "length >= 1"),
        ("[]", (), "Expected `object`"),
        ('{"brokers": [1], "partitions": []}', (), "missing required field `moves`"),
        (json.dumps(FILE), ("--bootstrap", "localhost:1"), "give one"),
    ],
)
def test_wrong_input_is_a_sentence(
    run_job: Callable[..., Result], tmp_path: Path, text: str, options: tuple[str, ...], sentence: str
) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(text)
    result = run_job("reassign", "--cluster", file, *options, "--out", tmp_path)
    assert result.exit_code == 2
    assert sentence in result.output
