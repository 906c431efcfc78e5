"""The job that plans a partition reassignment: its files, and the inbound rates out of events."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import Result

from pipeline.errors import InputError, PipelineError
from pipeline.jobs.job import Options
from pipeline.jobs.plan_move import load, with_rates, write
from pipeline.transforms.reassignment import Cluster, Move, Partition, plan
from pipeline.window import Window
from tests.support.messages.usage_events import make_event, write_lines

RunJob = Callable[..., Result]
GIB: Final = 1 << 30
FILE: Final[dict[str, Any]] = {
    "brokers": [1, 2, 3],
    "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2], "bytes": GIB, "bytes_in_rate": 50000}],
    "moves": [{"topic": "t", "partition": 0, "replicas": [2, 3]}],
}


@pytest.fixture
def cluster_file(tmp_path: Path) -> Path:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(FILE))
    return file


def plan_in(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "plan.json").read_text())
    return found


def test_the_job(run_job: RunJob, cluster_file: Path, tmp_path: Path) -> None:
    result = run_job("reassign", "--cluster", cluster_file, "--within", "100", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    found = plan_in(tmp_path / "out")
    assert found["throttle"] == 50_000 + -(-2 * GIB // 100)
    assert f"--throttle {found['throttle']} " in result.output
    assert found["expected_seconds"] == pytest.approx(GIB / (found["throttle"] - 2 * 50_000))


def test_inbound_rates_out_of_events(run_job: RunJob, cluster_file: Path, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event(topic="t", bytes_in=7_000_000)])
    options = ("--cluster", cluster_file, "--throttle", "600000", "--events", lines)
    result = run_job("reassign", *options, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    found = plan_in(tmp_path / "out")
    assert (found["throttle_min"], found["feasible"]) == (700_000, False)
    assert found["reason"] in result.output


def test_inbound_rates_are_of_one_cluster(run_job: RunJob, cluster_file: Path, tmp_path: Path) -> None:
    """Topics of two clusters may have the same name."""
    events = [
        make_event(cluster="east", topic="t", bytes_in=7_000_000),
        make_event(cluster="west", topic="t"),
    ]
    lines = write_lines(tmp_path / "events.jsonl", events)
    options = ("reassign", "--cluster", cluster_file, "--events", lines, "--out", tmp_path / "out")
    result = run_job(*options)
    assert result.exit_code == 2
    assert "east, west" in result.output
    assert not (tmp_path / "out/plan.json").exists()
    assert run_job(*options, "--events-cluster", "east").exit_code == 0
    assert plan_in(tmp_path / "out")["throttle_min"] == 700_000
    misspelled = run_job(*options, "--events-cluster", "north")
    assert misspelled.exit_code == 2
    assert "cluster north of --events-cluster" in misspelled.output
    assert "east, west" in misspelled.output
    nothing = run_job(*options, "--events-cluster", "north", "--to", "2020-01-01")
    assert nothing.exit_code == 0, nothing.output
    assert plan_in(tmp_path / "out")["throttle_min"] == 50_000


def test_without_events_and_rates(run_job: RunJob, cluster_file: Path, tmp_path: Path) -> None:
    partitions = [{name: value for name, value in FILE["partitions"][0].items() if name != "bytes_in_rate"}]
    cluster_file.write_text(json.dumps({**FILE, "partitions": partitions}))
    assert run_job("reassign", "--cluster", cluster_file, "--out", tmp_path).exit_code == 0
    assert plan_in(tmp_path)["throttle_min"] is None


def test_moves_in_a_file_of_their_own(run_job: RunJob, cluster_file: Path, tmp_path: Path) -> None:
    """They override those of the cluster's file, which may have none or invalid ones."""
    moves = tmp_path / "moves.json"
    partitions = [{"topic": "t", "partition": 0, "replicas": [3], "log_dirs": ["any"]}]
    moves.write_text(json.dumps({"version": 1, "partitions": partitions}))
    for own in ({}, {"moves": FILE["moves"]}, {"moves": [{"topic": 7}]}):
        cluster_file.write_text(json.dumps({**{key: FILE[key] for key in ("brokers", "partitions")}, **own}))
        options = ("--cluster", cluster_file, "--moves", moves)
        assert run_job("reassign", *options, "--out", tmp_path).exit_code == 0
        assert plan_in(tmp_path)["bytes_to_move"] == GIB


@pytest.mark.parametrize(
    ("text", "options", "named"),
    [
        ('{"brokers": []}', (), "$.brokers"),
        ("[]", (), "cluster.json"),
        ('{"brokers": [1], "partitions": []}', (), "`moves`"),
        (json.dumps(FILE), ("--bootstrap", "localhost:1"), "--bootstrap"),
    ],
)
def test_wrong_input_names_its_place(
    run_job: RunJob, cluster_file: Path, tmp_path: Path, text: str, options: tuple[str, ...], named: str
) -> None:
    cluster_file.write_text(text)
    result = run_job("reassign", "--cluster", cluster_file, *options, "--out", tmp_path)
    assert result.exit_code == 2
    assert named in result.output


def test_where_the_cluster_is_read_from_is_given_once(cluster_file: Path) -> None:
    with pytest.raises(InputError, match="--bootstrap"):
        load(None, None, None)
    with pytest.raises(InputError, match="--bootstrap"):
        load(cluster_file, "localhost:1", None)
    assert load(cluster_file, None, None).moves == [Move("t", 0, [2, 3])]


def test_a_broker_that_is_not_there_is_named() -> None:
    with pytest.raises(PipelineError, match="localhost:1") as failed:
        load(None, "localhost:1", None)
    assert not isinstance(failed.value, InputError)


def test_a_file_of_moves_without_partitions_is_named(cluster_file: Path, tmp_path: Path) -> None:
    moves = tmp_path / "moves.json"
    moves.write_text('{"version": 1}')
    with pytest.raises(InputError, match=r"moves\.json: partitions"):
        load(cluster_file, None, moves)


def test_partitions_without_events_keep_their_rates() -> None:
    cluster = Cluster([1], [Partition("t", 0, [1], 0, 5.0), Partition("t", 1, [1], 0, 6.0)], [])
    found = with_rates(cluster, {("t", 1): 60.0, ("other", 0): 1.0})
    assert [each.bytes_in_rate for each in found.partitions] == [5.0, 60.0]


def test_without_events_unknown_rates_stay_unknown() -> None:
    """The plan then has no least throttle, instead of 0."""
    cluster = Cluster([1], [Partition("t", 0, [1])], [])
    assert with_rates(cluster, {}) == cluster


def test_a_plan_that_cannot_be_written_is_a_sentence(
    run_job: RunJob, cluster_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "plan.json").mkdir()
    result = run_job("reassign", "--cluster", cluster_file, "--out", tmp_path)
    assert result.exit_code == 1
    assert f"{tmp_path}/plan.json" in result.output


def test_a_move_without_end_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster([1, 2], [Partition("t", 0, [1], GIB, 500.0)], [Move("t", 0, [2])])
    found = plan(cluster, throttle=400.0)
    write(found, Options("", str(tmp_path / "out"), Window()))
    assert plan_in(tmp_path / "out")["move_seconds"] is None
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("--throttle 400 ")
    assert found.reason in second
