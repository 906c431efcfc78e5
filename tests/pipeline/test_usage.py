"""Usage: sums, rates and shares; from JSON lines to a Parquet table, with a quarantine."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from pyspark.sql import DataFrame, SparkSession

from pipeline.schema import COUNTS, EVENT, USAGE
from pipeline.transforms.events import checked_lines, deduplicate
from pipeline.transforms.usage import usage
from tests.support.messages.usage_events import HOUR_MS, START_MS, make_event, write_lines

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


def test_an_event_counts_once_however_often_it_came(frame: Frame) -> None:
    events = [make_event(), make_event(topic=None, partition=None), make_event(api="Fetch")]
    assert deduplicate(frame(*events, *events, *events)).count() == 3


def test_from_json_lines_to_a_table(spark: SparkSession, run_job: RunJob, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    events = [make_event(at=10_000 * step, user=f"u{step % 3}", bytes_in=step) for step in range(40)]
    write_lines(folder / "one.jsonl", events[:30])
    write_lines(folder / "deeper/two.jsonl", events[20:])
    result = run_job("usage", "--events", folder, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    table = spark.read.parquet(str(tmp_path / "out/usage"))
    assert table.columns == USAGE.names
    assert table.groupBy().sum(*COUNTS).collect()[0].asDict() == {
        f"sum({name})": sum(event[name] for event in events) for name in COUNTS
    }
    assert not (tmp_path / "out/quarantine").exists()


def test_from_and_to(spark: SparkSession, run_job: RunJob, tmp_path: Path) -> None:
    events = [make_event(at=HOUR_MS * step, bytes_in=1 << step) for step in range(4)]
    lines = write_lines(tmp_path / "events.jsonl", events)
    window = ("--from", "2025-12-31T13:00", "--to", "2025-12-31T15:00:00Z")
    assert run_job("usage", "--events", lines, "--out", tmp_path / "out", *window).exit_code == 0
    found = spark.read.parquet(str(tmp_path / "out/usage")).collect()
    assert sorted(row.bytes_in for row in found) == [2, 4]


AHEAD = "interval_start_ms is more than a day in the future"
BAD: list[tuple[str | dict[str, Any], str]] = [
    ("no json", "is no JSON object of an event"),
    ("", "is no JSON object of an event"),
    ("[1]", "is no JSON object of an event"),
    ({**make_event(), "v": 2}, "v is 2; this pipeline reads version 1"),
    ({**make_event(), "bytes_in": "many"}, "bytes_in is missing or no bigint"),
    ({name: value for name, value in make_event().items() if name != "user"}, "user is missing or no string"),
    ({**make_event(), "requests": -1}, "requests is negative"),
    ({**make_event(), "interval_ms": 0}, "interval_ms is not above 0"),
    ({**make_event(), "requests": (1 << 53) + 1}, "requests is over 2^53"),
    ({**make_event(), "bytes_in": 1e16}, "bytes_in is missing or no bigint"),
    ({**make_event(), "interval_ms": 86_400_001}, "interval_ms is more than a day"),
    ({**make_event(), "interval_start_ms": -1}, "interval_start_ms is negative"),
    ({**make_event(), "interval_start_ms": 10**9}, "interval_start_ms is before 2015"),
    ({**make_event(), "interval_start_ms": (1 << 63) - 1}, AHEAD),
    ({**make_event(), "interval_start_ms": 1000 * START_MS}, AHEAD),
    ({**make_event(), "interval_start_ms": round(time.time() * 1000) + 2 * 86_400_000}, AHEAD),
    ({**make_event(), "partition": -1}, "partition is negative"),
    ({**make_event(), "api": ""}, "api is empty"),
    ({**make_event(), "user": 5}, "user is missing or no string"),
    ({**make_event(), "client_id": {"a": 1}}, "client_id is missing or no string"),
    ({**make_event(), "topic": True}, "topic is missing or no string"),
    (json.dumps({**make_event(), "user": 5}).replace("user", r"us\u0065r"), "user is missing or no string"),
    (json.dumps(make_event()) + " and more", "is no JSON object of an event"),
    (json.dumps(make_event()) + "," + json.dumps(make_event()), "is no JSON object of an event"),
    ({"a": 1}, "is no JSON object of an event"),
    ({**make_event(), "partition": "x"}, "topic, partition or quota is of a wrong type"),
]


def test_what_is_no_event_is_quarantined_with_its_reason(
    spark: SparkSession, run_job: RunJob, tmp_path: Path
) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event(), *[line for line, _ in BAD]])
    result = run_job("usage", "--events", lines, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    quarantine = spark.read.parquet(str(tmp_path / "out/quarantine"))
    assert sorted(row.reason for row in quarantine.collect()) == sorted(reason for _, reason in BAD)
    assert {row.raw for row in quarantine.collect()} >= {"no json", "", "[1]"}
    assert f"{1 + len(BAD)} events read" in result.output
    assert f"{len(BAD)} of them are not events" in result.output
    usage_table = spark.read.parquet(str(tmp_path / "out/usage"))
    assert usage_table.count() == 1


def test_unusual_names_and_fields_of_later_versions_are_events(spark: SparkSession) -> None:
    events = [
        make_event(user='{"user": 5}', client_id="a}, {b", topic='back\\slash "topic": 7'),
        {**make_event(), "later": {"user": 5, "list": [1, {"topic": False}]}},
        make_event(topic=None, partition=None),
    ]
    lines = spark.createDataFrame([(f" {json.dumps(event)}\t",) for event in events], "raw string")
    for event, row in zip(events, checked_lines(lines).collect(), strict=True):
        assert row.reason is None
        assert {name: row[name] for name in EVENT.names} == {name: event[name] for name in EVENT.names}


def test_a_table_of_events_is_a_source_as_well(
    spark: SparkSession, frame: Frame, run_job: RunJob, tmp_path: Path
) -> None:
    good, bad = make_event(), make_event(at=10_000, requests=-5)
    frame(good, bad).write.parquet(str(tmp_path / "events"))
    result = run_job("usage", "--events", tmp_path / "events", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert spark.read.parquet(str(tmp_path / "out/usage")).collect()[0].requests == good["requests"]
    quarantined = spark.read.parquet(str(tmp_path / "out/quarantine")).first()
    assert quarantined is not None
    assert quarantined.reason == "requests is negative"
    assert '"requests":-5' in quarantined.raw


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--events", "/nowhere/events"), "/nowhere/events does not exist"),
        (("--events", "kafka://host:9092"), "names no topic"),
        (("--from", "yesterday"), "'yesterday' is no time"),
        (("--from", "2026-01-02", "--to", "2026-01-01"), "is not after --from"),
        (("--conf", "spark.x"), "has no value"),
    ],
)
def test_wrong_input_is_a_sentence(
    run_job: RunJob, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    result = run_job("usage", "--events", lines, "--out", tmp_path / "out", *arguments)
    assert result.exit_code == 2
    assert sentence in result.output


def test_a_parquet_folder_of_something_else(spark: SparkSession, run_job: RunJob, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "ids"))
    result = run_job("usage", "--events", tmp_path / "ids", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "lacks the columns v, cluster" in result.output


def test_the_event_has_the_fields_of_the_factory() -> None:
    assert EVENT.names == list(make_event())
