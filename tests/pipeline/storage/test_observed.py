"""Jobs that have nothing to say end by themselves, with an empty table and the counts of what they read."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.sql import SparkSession

from tests.pipeline.jobs.test_report import GOLDEN
from tests.support.messages.usage_events import counts, make_event, write_lines
from tests.support.tables import read_rows

RunJob = Callable[..., Result]
EMPTY_WINDOW = ("--from", "2030-01-01", "--to", "2030-02-01")
PRICES = ("--prices", GOLDEN / "prices.yaml")
REPORTED = ("usage", "throttle", "chargeback", "invoices", "headroom")
QUOTAS = ("--quotas", GOLDEN / "quotas.yaml")


@pytest.mark.parametrize(
    ("job", "options"),
    [
        ("throttle", ()),
        ("usage", EMPTY_WINDOW),
        ("chargeback", (*PRICES, *EMPTY_WINDOW)),
        ("replay", (*QUOTAS, *EMPTY_WINDOW)),
        ("report", (*PRICES, *QUOTAS, *EMPTY_WINDOW)),
    ],
)
def test_an_empty_table(
    spark: SparkSession, run_job: RunJob, tmp_path: Path, job: str, options: tuple[object, ...]
) -> None:
    """Adaptive execution prunes the plan of an empty table, with the counters in it."""
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    events = [make_event(at=10_000 * step) for step in range(3)]
    lines = write_lines(tmp_path / "events.jsonl", [*events, "no event"])
    result = run_job(job, "--events", lines, "--out", tmp_path, *options)
    assert result.exit_code == 0, result.output
    assert counts(result.output, "events read") == [4]
    assert counts(result.output, str(tmp_path / "quarantine")) == [1]
    for table in REPORTED if job == "report" else (job,):
        assert len(read_rows(tmp_path / table)) == 0
        assert job != "report" or len((tmp_path / f"{table}.csv").read_text().splitlines()) == 1
    assert len(read_rows(tmp_path / "quarantine")) == 1


def test_no_quotas_from_no_traffic(run_job: RunJob, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    result = run_job("recommend", "--events", lines, "--out", tmp_path, *EMPTY_WINDOW)
    assert result.exit_code == 0, result.output
    assert counts(result.output, "events read") == [1]


def test_files_that_have_been_ingested(run_job: RunJob, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    for added in (1, 0):
        result = run_job("ingest", "--events", lines, "--out", tmp_path)
        assert result.exit_code == 0, result.output
        assert counts(result.output, "events added") == [added]
        assert counts(result.output, "events read") == [1]
