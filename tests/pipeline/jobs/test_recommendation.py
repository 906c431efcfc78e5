"""Recommending with a review: the last week is replayed with the recommended and the current quotas."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.sql import SparkSession
from rich.console import Console

from pipeline.errors import InputError
from pipeline.jobs.job import Job, Options
from pipeline.jobs.recommendation import Recommending, check_clusters, write_recommendation
from pipeline.transforms.recommend import Rules
from pipeline.window import Window
from tests.support.messages.usage_events import make_event, write_lines
from tests.support.tables import read_rows

RunJob = Callable[..., Result]
DAY_MS = 86_400_000
MB = 1_000_000


def test_the_review_is_of_the_last_week(run_job: RunJob, tmp_path: Path) -> None:
    """A tenant that was busy ten days ago is not in it. A current quota for which there is no recommendation
    stays in force.
    """
    waited = {"throttled_requests": 10, "throttle_ms": 9000, "quota": "producer_byte_rate"}
    events = [
        make_event(at=day * DAY_MS + 10_000 * step, user=user, bytes_in=size, **(waited if waits else {}))
        for user, day, size, waits in (
            ("early", 0, 50 * MB, True),
            ("early", 10, MB, False),
            ("late", 10, 20 * MB, True),
        )
        for step in range(5)
    ]
    events.append(make_event(at=10 * DAY_MS, user="rare", bytes_in=30 * MB, requests=300))
    lines = write_lines(tmp_path / "events.jsonl", events)
    current = tmp_path / "current.yaml"
    current.write_text(
        "quotas: {clients: [{entity: {user: late, client-id: billing}, producer_byte_rate: 1048576},"
        " {entity: {user: rare}, producer_byte_rate: 1000000}]}"
    )
    result = run_job(
        *(
            "recommend",
            "--events",
            lines,
            "--out",
            tmp_path,
            "--current",
            current,
            "--headroom",
            "1.5",
            "--review",
        )
    )
    assert result.exit_code == 0, result.output
    rows = read_rows(tmp_path / "replay")
    found = {row.user: row for row in rows}
    assert set(found) == {"late", "rare"}
    assert (found["late"].before_throttle_ms, found["late"].after_throttle_ms) == (45_000, 0)
    assert found["rare"].after_throttle_ms > 10_000
    (period,) = {(str(row["from"]), str(row["to"])) for row in rows}
    assert period == ("2026-01-03 12:00:50", "2026-01-10 12:00:50")
    assert "~ user late, client-id billing: producer_byte_rate 1048576 -> 3000320" in result.stdout
    assert "throttled longer: 1, shorter: 1" in result.stdout
    assert "No quota is set" in result.output


def test_no_events_are_no_changes(run_job: RunJob, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [])
    result = run_job("recommend", "--events", lines, "--out", tmp_path, "--review")
    assert result.exit_code == 0, result.output
    assert all(line.startswith("#") for line in result.stdout.splitlines())


def test_a_recommendation_is_a_file(spark: SparkSession, tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events.jsonl", [make_event(bytes_in=10_000_000), "no event"])
    with Job(Options(str(events), str(tmp_path / "out"), Window()), Console(quiet=True)) as job:
        write_recommendation(job, Recommending(Rules(headroom=1.0, samples=1)))
    assert "producer_byte_rate: 1000448" in (tmp_path / "out/quotas.yaml").read_text()
    assert len(read_rows(tmp_path / "out/quarantine")) == 1


def test_quotas_of_one_cluster_come_from_its_events(spark: SparkSession, tmp_path: Path) -> None:
    """A tenant of two clusters. The server of --bootstrap is of one cluster, so the user has to choose it."""
    sizes = {"east": 10 * MB, "west": 30 * MB}
    events = [make_event(cluster=cluster, bytes_in=size) for cluster, size in sizes.items()]
    lines = write_lines(tmp_path / "events.jsonl", events)
    said = io.StringIO()
    with Job(Options(str(lines), str(tmp_path), Window()), Console(file=said, width=200)) as job:
        options = Recommending(Rules(headroom=1.0, samples=1), review=True, events_cluster="east")
        write_recommendation(job, options)
        assert "producer_byte_rate: 1000448" in (tmp_path / "quotas.yaml").read_text()
        assert {row.cluster for row in read_rows(tmp_path / "replay")} <= {"east"}
        assert "east, west" not in said.getvalue()
        write_recommendation(job, replace(options, review=False, events_cluster=None))
        assert "producer_byte_rate: 3000320" in (tmp_path / "quotas.yaml").read_text()
        assert "clusters east, west" in said.getvalue()
        with pytest.raises(InputError, match=r"cluster north .*east, west"):
            write_recommendation(job, replace(options, events_cluster="north"))
        check_clusters(job, options, set())
        assert "cluster east " in said.getvalue()
        with pytest.raises(InputError, match=r"east, west.*--events-cluster"):
            check_clusters(job, replace(options, bootstrap="kafka:9092", events_cluster=None), set(sizes))
