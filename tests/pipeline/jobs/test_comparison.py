"""The comparison: without events, or with a bill of several periods, there is none."""

import io
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from pipeline.errors import InputError
from pipeline.inputs.prices import Prices, read_prices
from pipeline.jobs.batch import write_chargeback
from pipeline.jobs.comparison import before
from pipeline.jobs.job import Job, Options
from pipeline.report.figures import Before
from pipeline.window import make_window
from tests.support.messages.usage_events import HOUR_MS, make_event, write_lines

PRICES = read_prices(Path(__file__).parents[1] / "golden/prices.yaml")
FIRST_HOUR = "2025-12-31 12:00, UTC"
TENANT = ("local", "alice", "billing")
Compare = Callable[..., tuple[Before | None, str]]


@pytest.fixture
def compare(spark: SparkSession, tmp_path: Path) -> Compare:
    """Compare a report of these events with the period before; return what is known of it, and the output."""

    def run(
        events: list[dict[str, Any]],
        *period: str | None,
        prices: Prices | None = None,
        previous: Path | None = None,
    ) -> tuple[Before | None, str]:
        lines, output = write_lines(tmp_path / "events.jsonl", events), io.StringIO()
        options = Options(str(lines), str(tmp_path / "out"), make_window(*period))
        with Job(options, Console(file=output)) as job:
            return before(job, prices, None if previous is None else str(previous)), output.getvalue()

    return run


def test_a_month_without_a_month_before(compare: Compare) -> None:
    found, output = compare([make_event()], "2025-12-01", "2026-01-01")
    assert found is None
    assert "2025-11-01 00:00 to 2025-12-01 00:00" in output
    found, output = compare([make_event()], "2025-12-01", None)
    assert found is None
    assert "--previous" in output


def test_an_hour_is_compared_with_the_hour_before(compare: Compare) -> None:
    events = [make_event(bytes_in=1000), make_event(at=HOUR_MS, bytes_in=3000, bytes_out=100)]
    found, output = compare(events, "2025-12-31T13:00", "2025-12-31T14:00", prices=PRICES)
    assert found is not None
    assert found.uses[TENANT].bytes_in == 1000
    assert found.uses[TENANT].amount is not None
    assert "2025-12-31 12:00 to 2025-12-31 13:00, UTC: 1 " in output
    assert FIRST_HOUR not in output


def test_a_period_whose_beginning_may_be_deleted(compare: Compare) -> None:
    events = [make_event(), make_event(at=HOUR_MS)]
    _, output = compare(events, "2025-12-31T13:00", "2025-12-31T15:00")
    assert FIRST_HOUR in output


def test_a_report_without_prices_is_compared_by_bytes(
    spark: SparkSession, compare: Compare, tmp_path: Path
) -> None:
    """Also with a bill."""
    lines = write_lines(tmp_path / "first.jsonl", [make_event()])
    options = Options(str(lines), str(tmp_path), make_window("2025-12-31T12:00", "2025-12-31T13:00"))
    with Job(options, Console(quiet=True)) as job:
        write_chargeback(job, PRICES)
    for prices in (None, PRICES):
        found, _ = compare([], None, None, prices=prices, previous=tmp_path)
        assert found is not None
        assert found.billed
        assert found.period == (datetime(2025, 12, 31, 12), datetime(2025, 12, 31, 13))
        assert found.uses[TENANT].bytes_in == 1000
        assert (found.uses[TENANT].amount is None) == (prices is None)


def test_a_bill_in_another_format_is_no_bill(spark: SparkSession, compare: Compare, tmp_path: Path) -> None:
    """The files of a Delta table also have the rows of earlier runs, and its log says which ones count."""
    spark.createDataFrame([("CHF",)], "currency string").write.parquet(str(tmp_path / "chargeback"))
    (tmp_path / "chargeback/_delta_log").mkdir()
    (tmp_path / "chargeback/_delta_log/00000000000000000000.json").touch()
    with pytest.raises(InputError, match="delta"):
        compare([], None, None, previous=tmp_path)
