"""Usage: sums, rates and shares; from JSON lines to a Parquet table."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.sql import DataFrame, SparkSession

from pipeline.schema import COUNTS, EVENT, USAGE, of_period
from pipeline.transforms.usage import usage
from tests.support.messages.usage_events import HOUR_MS, make_event, write_lines
from tests.support.tables import read_rows, read_table

Frame = Callable[..., DataFrame]
RunJob = Callable[..., Result]


def test_an_hour_is_the_sum_of_its_intervals(frame: Frame) -> None:
    found = usage(
        frame(
            make_event(bytes_in=1000, requests=3),
            make_event(at=10_000, bytes_in=5000, throttled_requests=2, throttle_ms=700, quota="x"),
            make_event(at=HOUR_MS, bytes_in=9),
        )
    ).collect()
    first, second = sorted(found, key=lambda row: row.hour)
    assert (first.requests, first.bytes_in, first.bytes_out) == (13, 6000, 200)
    assert (first.throttled_requests, first.throttle_ms) == (2, 700)
    assert first.hour.replace(tzinfo=UTC) == datetime(2025, 12, 31, 12, tzinfo=UTC)
    assert (second.bytes_in, second.share_in) == (9, 1.0)


def test_a_rate_is_that_of_an_interval_with_all_apis_and_proxies(frame: Frame) -> None:
    row = usage(
        frame(
            make_event(bytes_in=1000, bytes_out=0),
            make_event(bytes_in=0, bytes_out=50_000, api="Fetch"),
            make_event(bytes_in=3000, bytes_out=0, proxy="proxy-2"),
            make_event(at=10_000, bytes_in=100, bytes_out=0),
        )
    ).first()
    assert row is not None
    assert (row.max_bytes_in_rate, row.max_bytes_out_rate) == (400.0, 5000.0)
    assert row.p95_bytes_in_rate == pytest.approx(10 + 0.95 * 390)
    assert row.p99_bytes_in_rate == pytest.approx(10 + 0.99 * 390)


def test_a_rate_of_the_largest_counts(frame: Frame) -> None:
    events = [make_event(bytes_in=1 << 53, partition=0, api=api) for api in ("Produce", "Fetch")]
    (row,) = usage(frame(*events)).collect()
    assert row.max_bytes_in_rate == pytest.approx(2 * (1 << 53) / 10)


def test_shares_are_of_the_cluster_in_that_hour(frame: Frame) -> None:
    rows = usage(
        frame(
            make_event(bytes_in=300, bytes_out=0),
            make_event(bytes_in=100, bytes_out=0, user="bob"),
            make_event(bytes_in=100, cluster="other"),
        )
    ).collect()
    assert sorted((row.cluster, row.user, row.share_in) for row in rows) == [
        ("local", "alice", 0.75),
        ("local", "bob", 0.25),
        ("other", "alice", 1.0),
    ]
    assert [row.share_out for row in rows if row.cluster == "local"] == [0.0, 0.0]


def test_by_day(frame: Frame) -> None:
    rows = usage(frame(make_event(), make_event(at=HOUR_MS), make_event(at=12 * HOUR_MS)), "day").collect()
    assert sorted((row.hour.day, row.bytes_in) for row in rows) == [(1, 1000), (31, 2000)]


def test_what_belongs_to_no_topic_is_kept(frame: Frame) -> None:
    rows = usage(frame(make_event(topic=None, partition=None), make_event())).collect()
    assert sorted(str(row.topic) for row in rows) == ["None", "orders"]


def test_from_json_lines_to_a_table(run_job: RunJob, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    events = [make_event(at=10_000 * step, user=f"u{step % 3}", bytes_in=step) for step in range(40)]
    write_lines(folder / "one.jsonl", events[:30])
    write_lines(folder / "deeper/two.jsonl", events[20:])
    result = run_job("usage", "--events", folder, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert read_table(tmp_path / "out/usage").column_names == [*of_period(USAGE).names, "date"]
    rows = read_rows(tmp_path / "out/usage")
    for name in COUNTS:
        assert sum(row[name] for row in rows) == sum(event[name] for event in events)
    assert not (tmp_path / "out/quarantine").exists()


def test_from_and_to(run_job: RunJob, tmp_path: Path) -> None:
    events = [make_event(at=HOUR_MS * step, bytes_in=1 << step) for step in range(4)]
    lines = write_lines(tmp_path / "events.jsonl", events)
    window = ("--from", "2025-12-31T13:00", "--to", "2025-12-31T15:00:00Z")
    assert run_job("usage", "--events", lines, "--out", tmp_path / "out", *window).exit_code == 0
    found = read_rows(tmp_path / "out/usage")
    assert sorted(row.bytes_in for row in found) == [2, 4]


def test_a_parquet_folder_of_something_else(spark: SparkSession, run_job: RunJob, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "ids"))
    result = run_job("usage", "--events", tmp_path / "ids", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert str(tmp_path / "ids") in result.output
    assert ", ".join(EVENT.names) in result.output


def test_the_event_has_the_fields_of_the_factory() -> None:
    assert EVENT.names == list(make_event())
