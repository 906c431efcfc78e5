"""The report: a golden page of a fixed hour, units, charts, and a page without events."""

import csv
from collections.abc import Callable
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from click.testing import Result

from pipeline.report import units
from pipeline.report.charts import heat_map, stacked_columns
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.size(0), "0 B"),
        (units.size(1023), "1023 B"),
        (units.size(1536), "1.5 KiB"),
        (units.rate(200 * 1024**2), "200 MiB/s"),
        (units.count(999), "999"),
        (units.count(2_370_000_000), "2.37 G"),
        (units.duration(120), "120 ms"),
        (units.duration(12_500), "12.5 s"),
        (units.duration(200_000), "3 min 20 s"),
        (units.duration(7_200_000), "2 h"),
        (units.duration(18_600_000), "5 h 10 min"),
        (units.percent(0.004), "< 1 %"),
        (units.percent(0.5), "50 %"),
        (units.percent(0.0), "0 %"),
    ],
)
def test_numbers_as_people_read_them(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    ("highest", "steps", "expected"),
    [
        (0.0, units.SIZES, [0, 1]),
        (900.0, units.SIZES, [0, 250, 500, 750, 1000]),
        (3 * 1024.0**3, units.SIZES, [0, 1024**3, 2 * 1024**3, 3 * 1024**3]),
        (5.2 * 3_600_000, units.TIMES, [0, 7_200_000, 14_400_000, 21_600_000]),
    ],
)
def test_axes_have_round_numbers(highest: float, steps: tuple[float, ...], expected: list[float]) -> None:
    assert units.ticks(highest, steps) == pytest.approx(expected)


def test_columns_stand_on_each_other() -> None:
    hours = [NOON, NOON + timedelta(hours=1)]
    series = {"a": {hours[0]: 30.0}, "b": {hours[0]: 10.0, hours[1]: 20.0}}
    chart = stacked_columns(
        series, {"a": "red", "b": "blue"}, str, units.SIZES, (hours[0], hours[1]), height=200.0
    )
    first, second, third = chart.boxes
    assert first.y == pytest.approx(second.y + second.height)
    assert first.height == pytest.approx(3 * second.height)
    assert third.y + third.height == pytest.approx(first.y + first.height)
    assert third.x > first.x
    assert second.title == "2026-01-01 12:00  b: 10.0"


def test_a_heat_map_has_all_hours_of_its_days() -> None:
    chart = heat_map({NOON: 5.0, NOON + timedelta(days=2): 10.0}, str)
    assert len(chart.boxes) == 3 * 24
    assert [label.text for label in chart.y_labels] == ["Thu Jan 1", "Fri Jan 2", "Sat Jan 3"]
    assert chart.boxes[13].title == "2026-01-01 13:00  no events"
