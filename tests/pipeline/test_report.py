"""The report: a golden page of a fixed hour, units, charts, and a page without events."""

import csv
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from click.testing import Result
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.jobs.report import _hours, _throttle_hours
from pipeline.report.page import Figures, render
from tests.support.messages.usage_events import make_event, write_lines

RunJob = Callable[..., Result]
GOLDEN: Final = Path(__file__).parent / "golden"
NOON: Final = datetime(2026, 1, 1, 12)


class Page(HTMLParser):
    """A page's links and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.texts += [data.strip()] if data.strip() else []


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
        assert list((tmp_path / table).glob("*.parquet"))
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
    texts = [(each.isoformat(), "u", "c", "q", 1, 1) for each in times]
    table = spark.createDataFrame(
        texts, "hour string, user string, client_id string, quota string, bytes_in int, bytes_out int"
    ).withColumn("hour", F.col("hour").cast("timestamp"))
    assert [found.hour for found in _hours(table, [("u", "c")])] == times
    waits = table.withColumnRenamed("bytes_in", "throttle_ms")
    assert list(_throttle_hours(waits)["q"]) == times


def test_the_page_needs_nothing_beside_it() -> None:
    page = Page((GOLDEN / "report.html").read_text())
    assert page.references == []
    assert not {"script", "link", "img", "iframe"} & set(page.tags)


def test_names_are_texts_and_no_markup(run_job: RunJob, tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    event = make_event(user=name, client_id='"&', quota="<b>", throttle_ms=5, throttled_requests=1)
    lines = write_lines(tmp_path / "events.jsonl", [event, "no event"])
    result = run_job("report", "--events", lines, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    page = Page((tmp_path / "report.html").read_text())
    assert "script" not in page.tags
    assert f'{name} / "&' in page.texts
    assert "1 lines are no events" in page.texts


def test_without_events_the_page_says_so() -> None:
    page = Page(render(Figures(clusters=[], hours=[], bound=[], throttle_hours={})))
    assert "There are no events in this window." in page.texts
