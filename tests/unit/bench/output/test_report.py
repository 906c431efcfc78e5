"""The run as files."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console

from bench.output.report import Report
from bench.output.summary import Figure, Summary
from bench.scenarios import Scenario

PRODUCE = Scenario("produce", "Small produce", "produce", 100, 1000)
FETCH = Scenario("fetch", "Large fetch", "fetch", 1000, 1000)
OPEN = replace(PRODUCE, name="open", title="Open loop", rate=3000.0)
PROXY = Summary(
    "proxy",
    Figure(12345, 12000),
    Figure(11, 10),
    Figure(1, 2),
    Figure(3, 4),
    peak_rss_mib=45.6,
    cpu_ms_per_1k_req=Figure(7, 8),
    cpu_s_per_gib=Figure(0.5, 0.6),
    cpu_ratio=Figure(1.25, 1.5),
    added_p99_ms=Figure(0.1, 0.2),
)
DIRECT = Summary("direct", Figure(99, 98), Figure(97, 96), Figure(1, 2), Figure(3, 4))
REPORT = Report(
    name="try",
    rounds=5,
    reference="haproxy",
    machine={"cpu": "2 x Fast"},
    remarks=["skipped: nothing"],
    scenarios=[PRODUCE, FETCH, OPEN],
    samples={"produce": {"proxy": [{"p99_ms": 3}]}},
    summaries={each.name: [DIRECT, PROXY] for each in (PRODUCE, FETCH, OPEN)},
)


def test_markdown_shows_what_says_something_about_each_scenario() -> None:
    text = REPORT.markdown()
    assert "| peer | requests/s | CPU ms per 1,000 | CPU x haproxy | p99 ms | peak MiB |" in text
    assert "| proxy | 12,345 (12,000) | 7.00 (8.00) | 1.25 (1.50) | 3.00 (4.00) | 46 |" in text
    assert "| proxy | 11 (10) | 0.50 (0.60) | 1.25 (1.50) | 3.00 (4.00) | 46 |" in text
    assert "| proxy | 7.00 (8.00) | 1.25 (1.50) | 3.00 (4.00) | 0.10 (0.20) | 46 |" in text
    assert "| direct | 99 (98) | - | - | 3.00 (4.00) | - |" in text
    assert "- skipped: nothing" in text


def test_files_hold_every_sample(tmp_path: Path) -> None:
    data, text = REPORT.save(tmp_path / "results")
    content = json.loads(data.read_text())
    assert content["samples"]["produce"]["proxy"] == [{"p99_ms": 3}]
    assert content["summaries"]["fetch"][1]["cpu_ratio"] == {"best": 1.25, "median": 1.5}
    assert text.read_text() == REPORT.markdown()


def test_the_terminal_shows_every_scenario() -> None:
    out = StringIO()
    REPORT.show(Console(file=out, width=100))
    for scenario in REPORT.scenarios:
        assert scenario.title in out.getvalue()
    assert "skipped: nothing" in out.getvalue()


def test_the_picture_has_the_closed_loops_of_the_proxies() -> None:
    samples = {
        "haproxy": [{"cpu_s": 2.0}, {"cpu_s": 4.0}, {"cpu_s": 3.0}],
        "direct": [{"cpu_s": 0.0}] * 3,
        "proxy": [{"cpu_s": 6.0}, {"cpu_s": 1.5}, {"cpu_s": 3.0}],
    }
    report = replace(REPORT, samples={each.name: samples for each in (PRODUCE, FETCH, OPEN)})
    chart = report.picture()
    assert [name for name, _ in chart.groups] == ["produce", "fetch"]
    bars = {bar.name: (bar.least, bar.median, bar.most) for bar in chart.groups[0][1]}
    assert bars == {"haproxy": (2 / 3, 1.0, 4 / 3), "proxy": (0.5, 1.0, 2.0)}
