"""The jobs that read events and write one table."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from pipeline.cli.main import main
from pipeline.jobs import batch
from pipeline.jobs.job import Job, Options
from pipeline.schema import STORED_EVENT
from pipeline.storage.locks import locked
from pipeline.transforms.events import with_date
from pipeline.window import make_window
from tests.support.messages.usage_events import HOUR_MS, counts, make_event, write_lines
from tests.support.tables import read_rows, read_table

RunJob = Callable[..., Result]
FOREVER = make_window(None, None)


def test_files_are_added_once_however_often(run_job: RunJob, tmp_path: Path) -> None:
    events = [make_event(at=8 * HOUR_MS * step, bytes_in=step, topic=None) for step in range(6)]
    lines, out = tmp_path / "events.jsonl", tmp_path / "out"
    for end, there in ((3, 3), (3, 3), (6, 6)):
        write_lines(lines, [*events[:end], events[0]])
        result = run_job("ingest", "--events", lines, "--out", out)
        assert result.exit_code == 0, result.output
        stored = read_rows(out / "events")
        assert sorted(row.bytes_in for row in stored) == list(range(there))
    dates = sorted(path.name for path in (out / "events").glob("date=*"))
    assert dates == ["date=2025-12-31", "date=2026-01-01", "date=2026-01-02"]
    assert read_table(out / "events").column_names == STORED_EVENT.names


def test_a_table_that_another_run_writes_is_left_alone(run_job: RunJob, tmp_path: Path) -> None:
    lines, out = write_lines(tmp_path / "events.jsonl", [make_event()]), tmp_path / "out"
    for job, table in (("ingest", "events"), ("throttle", "throttle")):
        out.mkdir(exist_ok=True)
        with locked(str(out), table):
            result = run_job(job, "--events", lines, "--out", out)
        assert result.exit_code == 1, result.output
        assert str(out / table) in result.output.splitlines()[-1]
    assert not list(out.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("job", "table"),
    [
        ("ingest", "events"),
        ("usage", "usage"),
        ("throttle", "throttle"),
        ("chargeback", "chargeback"),
        ("replay", "replay"),
        ("recommend", "skipped"),
        ("report", "invoices"),
    ],
)
def test_the_lock_of_another_run_is_found_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, job: str, table: str
) -> None:
    monkeypatch.setattr("pipeline.jobs.job.make_session", None)
    (tmp_path / "prices.yaml").write_text("{currency: CHF}")
    (tmp_path / "quotas.yaml").write_text("quotas: {clients: []}")
    prices, quotas = ["--prices", tmp_path / "prices.yaml"], ["--quotas", tmp_path / "quotas.yaml"]
    options = {"chargeback": prices, "replay": quotas, "report": prices}.get(job, [])
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    arguments = [job, "--events", lines, "--out", tmp_path, *options]
    with locked(str(tmp_path), table):
        result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == 1
    assert str(tmp_path / table) in result.output.splitlines()[-1]


def test_what_was_ingested_is_a_source(run_job: RunJob, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event(), make_event(partition=1)])
    assert run_job("ingest", "--events", lines, "--out", tmp_path).exit_code == 0
    assert run_job("usage", "--events", tmp_path / "events", "--out", tmp_path).exit_code == 0
    assert len(read_rows(tmp_path / "usage")) == 2


def test_events_that_came_too_late_are_counted_or_named(
    frame: Callable[..., DataFrame], run_job: RunJob, tmp_path: Path
) -> None:
    """Once, also if both tables have an event, and only those of the window."""
    tables = {
        "events": [make_event(requests=1), make_event(at=1, requests=2)],
        "late": [make_event(at=1, requests=2), make_event(at=2, requests=4), make_event(at=HOUR_MS)],
    }
    for name, events in tables.items():
        with_date(frame(*events)).write.partitionBy("date").parquet(str(tmp_path / name))
    folders = ("--events", tmp_path / "events", "--out", tmp_path / "out")
    options = ("usage", *folders, "--from", "2025-12-31T12:00", "--to", "2025-12-31T13:00")
    for more, requests, late in (((), 3, [2]), (("--with-late",), 7, []), (("--with-late",), 7, [])):
        result = run_job(*options, *more)
        assert result.exit_code == 0, result.output
        assert [row.requests for row in read_rows(tmp_path / "out/usage")] == [requests]
        assert counts(result.output, "late/") == late
    hour_after = run_job("usage", *folders, "--from", "2025-12-31T13", "--to", "2025-12-31T14", "--with-late")
    assert counts(hour_after.output, "period before") == [2]
    assert sorted(row.requests for row in read_rows(tmp_path / "out/usage")) == [7, 10]
    lines = write_lines(tmp_path / "events.jsonl", tables["events"])
    assert run_job("usage", "--events", lines, "--out", tmp_path / "out", "--with-late").exit_code == 2


def test_a_window_within_an_hour_is_named(run_job: RunJob, tmp_path: Path) -> None:
    """Its row would otherwise look like that of the whole hour or day."""
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    job = ("usage", "--events", lines, "--out", tmp_path / "out")
    hour = ("--from", "2025-12-31T12:00", "--to", "2025-12-31T13:00")
    for options, told in (
        (hour, []),
        ((*hour[:-1], "2025-12-31T12:30"), ["--to is within an hour"]),
        ((*hour, "--by", "day"), ["--from is within a day", "--to is within a day"]),
    ):
        output = run_job(*job, *options).output
        lines_told = [line for line in output.splitlines() if " is within " in line]
        assert [line.partition(" (UTC)")[0].partition(":")[0] for line in lines_told] == told


@pytest.mark.parametrize("sign_of_a_stream", ["events/_spark_metadata/0", "events/_stream"])
def test_the_table_of_a_stream_is_not_appended_to(
    run_job: RunJob, tmp_path: Path, sign_of_a_stream: str
) -> None:
    lines, out = write_lines(tmp_path / "events.jsonl", [make_event()]), tmp_path / "out"
    (out / sign_of_a_stream).parent.mkdir(parents=True)
    (out / sign_of_a_stream).touch()
    result = run_job("ingest", "--events", lines, "--out", out)
    assert result.exit_code == 2
    assert f"{out}/events" in result.output
    assert "--stream" in result.output
    assert not list(out.rglob("*.parquet"))


def test_what_a_replay_does_not_know_is_named(run_job: RunJob, tmp_path: Path) -> None:
    """A quota that events say nothing about, one that throttled, but that no replay knows."""
    mutations = {"api": "CreateTopics", "topic": None, "quota": "controller_mutation_rate", "throttle_ms": 9}
    lines = write_lines(tmp_path / "events.jsonl", [make_event(user="bob", **mutations)])
    file = tmp_path / "quotas.yaml"
    file.write_text("quotas: {clients: [{entity: {user: <default>}, request_percentage: 5}]}")
    result = run_job("replay", "--events", lines, "--out", tmp_path / "out", "--quotas", file)
    assert result.exit_code == 0, result.output
    first, second = (
        next(line for line in result.output.splitlines() if key in line)
        for key in ("request_percentage", "controller_mutation_rate")
    )
    assert first != second
    assert str(tmp_path / "out/replay") in second


def test_inbound_rates_are_by_partition(spark: SparkSession, tmp_path: Path) -> None:
    """What producers send in an interval, whoever they are."""
    events = write_lines(
        tmp_path / "events.jsonl",
        [
            make_event(bytes_in=2_000, bytes_out=77),
            make_event(user="bob", bytes_in=3_000),
            make_event(partition=1, bytes_in=1_000),
        ],
    )
    with Job(Options(str(events), str(tmp_path / "out"), FOREVER), Console(quiet=True)) as job:
        rates = batch.inbound_rates(job)
    assert rates == {("orders", 0): pytest.approx(500.0), ("orders", 1): pytest.approx(100.0)}
