"""The comparison: without events, or with a bill of several periods, there is none."""

from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from tests.support.messages.usage_events import make_event, write_lines

RunJob = Callable[..., Result]
PRICES = Path(__file__).parent / "golden/prices.yaml"


def compared(output: str) -> str:
    (line,) = [line for line in output.splitlines() if line.startswith("Compared with")]
    return line


def test_a_month_without_a_month_before(run_job: RunJob, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    report = ("report", "--events", lines, "--out", tmp_path / "out")
    result = run_job(*report, "--from", "2025-12-01", "--to", "2026-01-01")
    assert result.exit_code == 0, result.output
    assert "no events from 2025-11-01 00:00 to 2025-12-01 00:00" in compared(result.output)
    assert "Top movers" not in (tmp_path / "out/report.html").read_text()
    result = run_job(*report, "--from", "2025-12-01")
    assert "--previous" in compared(result.output)


def test_a_report_of_an_hour_is_compared_with_the_hour_before(run_job: RunJob, tmp_path: Path) -> None:
    events = [make_event(bytes_in=1000), make_event(at=3_600_000, bytes_in=3000, bytes_out=100)]
    lines = write_lines(tmp_path / "events.jsonl", events)
    period = ("--from", "2025-12-31T13:00", "--to", "2025-12-31T14:00")
    result = run_job("report", "--events", lines, "--out", tmp_path, "--prices", PRICES, *period)
    assert result.exit_code == 0, result.output
    assert "2025-12-31 12:00 to 2025-12-31 13:00, UTC: 1 tenants" in compared(result.output)
    assert "+182 %" in (tmp_path / "report.html").read_text()
    assert "The first event of the period before" not in result.output


def test_a_period_whose_beginning_may_be_deleted(run_job: RunJob, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event(), make_event(at=3_600_000)])
    period = ("--from", "2025-12-31T13:00", "--to", "2025-12-31T15:00")
    result = run_job("report", "--events", lines, "--out", tmp_path, *period)
    assert result.exit_code == 0, result.output
    assert "The first event of the period before is of 2025-12-31 12:00, UTC" in result.output


def test_a_report_without_prices_is_compared_by_bytes(run_job: RunJob, tmp_path: Path) -> None:
    """Also with a bill."""
    lines = write_lines(tmp_path / "events.jsonl", [make_event(), make_event(at=3_600_000, bytes_in=3000)])
    periods = [("12:00", "13:00"), ("13:00", "14:00")]
    for place, more in enumerate((("--prices", PRICES), ("--previous", tmp_path / "0"))):
        start, end = (f"2025-12-31T{time}" for time in periods[place])
        out = tmp_path / str(place)
        result = run_job("report", "--events", lines, "--out", out, "--from", start, "--to", end, *more)
        assert result.exit_code == 0, result.output
    page = (tmp_path / "1/report.html").read_text()
    assert "Top movers" in page
    assert "Amount before" not in page
