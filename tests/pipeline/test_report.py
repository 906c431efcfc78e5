"""The report: a golden page of a fixed hour, with its tables."""

import csv
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest
from click.testing import Result
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from pipeline.jobs.report import _hours, _throttle_hours
from tests.pipeline.test_page import Page
from tests.support.messages.usage_events import make_event, write_lines

RunJob = Callable[..., Result]
GOLDEN: Final = Path(__file__).parent / "golden"
NOON: Final = datetime(2026, 1, 1, 12)


def test_the_report_of_a_fixed_hour(run_job: RunJob, tmp_path: Path) -> None:
    """To accept a change, copy the file that the failure names over the golden page, and look at it."""
    result = run_job(
        *("report", "--events", GOLDEN / "hour.jsonl", "--out", tmp_path),
        *("--prices", GOLDEN / "prices.yaml", "--quotas", GOLDEN / "quotas.yaml"),
    )
    assert result.exit_code == 0, result.output
    page = (tmp_path / "report.html").read_text()
    golden = GOLDEN / "report.html"
    assert page == golden.read_text(), f"{tmp_path / 'report.html'} differs from {golden}"
    for table in ("usage", "throttle", "chargeback", "headroom"):
        assert list((tmp_path / table).rglob("*.parquet"))
        assert (tmp_path / f"{table}.csv").is_file()
    with (tmp_path / "chargeback.csv").open() as file:
        assert sorted((row["user"], row["client_id"], row["amount"]) for row in csv.DictReader(file)) == [
            ("alice", "writer", "0.69"),
            ("bob", "reader", "0.12"),
            ("bob", "writer", "0.68"),
            ("carol", "reader", "0.01"),
            ("carol", "writer", "0.11"),
        ]


@pytest.fixture(params=["America/New_York", "Europe/Berlin"])
def elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process in another time zone than UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
def test_hours_are_utc_on_every_machine(spark: SparkSession) -> None:
    """Also the hour that a clock shows twice at the end of summer time."""
    times = [datetime(2025, month, day, hour) for month, day in ((10, 26), (11, 2)) for hour in range(9)]
    texts = [(each.isoformat(), "e", "u", "c", "q", 1, 1) for each in times]
    table = spark.createDataFrame(
        texts,
        "hour string, cluster string, user string, client_id string, quota string, "
        "bytes_in int, bytes_out int",
    ).withColumn("hour", F.col("hour").cast("timestamp"))
    named = [Row(cluster="e", user="u", client_id="c")]
    assert [found.hour for found in _hours(table, named, several=False)] == times
    waits = table.withColumnRenamed("bytes_in", "throttle_ms")
    assert list(_throttle_hours(waits)["q"]) == times


def test_a_tenant_is_a_cluster_a_user_and_a_client_id(run_job: RunJob, tmp_path: Path) -> None:
    """Names with the label's separator do not make two tenants one, nor do two clusters share a bill."""
    names = [("a / b", "c"), ("a", "b / c")]
    events = [make_event(user=user, client_id=client_id, bytes_in=1 << 30) for user, client_id in names]
    events += [make_event(cluster=cluster, user="both", bytes_in=1 << 30) for cluster in ("east", "west")]
    lines = write_lines(tmp_path / "events.jsonl", events)
    result = run_job(
        *("report", "--events", lines, "--out", tmp_path),
        *("--prices", GOLDEN / "prices.yaml", "--quotas", GOLDEN / "quotas.yaml"),
    )
    assert result.exit_code == 0, result.output
    page = Page((tmp_path / "report.html").read_text())
    labels = {'local / "a / b" / c', 'local / a / "b / c"', "east / both / billing", "west / both / billing"}
    assert labels < set(page.texts)
    assert {"All 1 of east", "All 2 of local", "All 1 of west", "bill of west, EUR"} < set(page.texts)
    with (tmp_path / "chargeback.csv").open(newline="") as file:
        assert sorted((row["cluster"], row["user"]) for row in csv.DictReader(file)) == [
            ("east", "both"),
            ("local", "a"),
            ("local", "a / b"),
            ("west", "both"),
        ]


def test_tables_say_their_period(spark: SparkSession, run_job: RunJob, tmp_path: Path) -> None:
    """Without --to it ends with the last interval of the events."""
    quota = {"quota": "producer_byte_rate", "throttle_ms": 5, "throttled_requests": 1}
    events = [make_event(at=10_000 * place, **quota) for place in range(3)]
    lines = write_lines(tmp_path / "events.jsonl", [*events, make_event(at=-10_000), "no event"])
    quotas = ("--prices", GOLDEN / "prices.yaml", "--quotas", GOLDEN / "quotas.yaml")
    for job, options in (("report", quotas), ("replay", quotas[2:])):
        result = run_job(job, "--events", lines, "--out", tmp_path, "--from", "2025-12-31T12:00", *options)
        assert result.exit_code == 0, result.output
    for name in ("usage", "throttle", "chargeback", "headroom", "replay"):
        table = spark.read.parquet(str(tmp_path / name))
        (row,) = table.select(*[F.col(end).cast("string") for end in ("from", "to")]).distinct().collect()
        assert tuple(row) == ("2025-12-31 12:00:00", "2025-12-31 12:00:30"), name
    text = "Cluster local, from 2025-12-31 12:00 to 2025-12-31 12:00:30, UTC"
    assert text in Page((tmp_path / "report.html").read_text()).texts
    assert not list(tmp_path.glob(".*.rows"))


def test_names_are_no_formulas_in_csv(run_job: RunJob, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event(user='=cmd|"x"', client_id="a\n,b")])
    result = run_job("report", "--events", lines, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    with (tmp_path / "usage.csv").open(newline="") as file:
        assert [(row["user"], row["client_id"]) for row in csv.DictReader(file)] == [('\'=cmd|"x"', "a\n,b")]


def test_quotas_without_a_name_add_up(spark: SparkSession) -> None:
    rows = [(NOON.isoformat(), quota, 5) for quota in (None, "", "q")]
    table = spark.createDataFrame(rows, "hour string, quota string, throttle_ms int")
    found = _throttle_hours(table.withColumn("hour", F.col("hour").cast("timestamp")))
    assert found == {"unknown": {NOON: 10}, "q": {NOON: 5}}


def test_a_window_without_events(spark: SparkSession, run_job: RunJob, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    result = run_job(
        *("report", "--events", lines, "--out", tmp_path, "--from", "2020-01-01", "--to", "2020-01-02"),
        *("--prices", GOLDEN / "prices.yaml", "--quotas", GOLDEN / "quotas.yaml"),
    )
    assert result.exit_code == 0, result.output
    for table in ("usage", "throttle", "chargeback", "headroom"):
        assert spark.read.parquet(str(tmp_path / table)).count() == 0
        assert len((tmp_path / f"{table}.csv").read_text().splitlines()) == 1
