"""What is an event and what is not, with the reason; events of a window, and their day."""

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.schema import EVENT, QUARANTINE, STORED_EVENT
from pipeline.transforms.duplicates import PLACE
from pipeline.transforms.events import (
    LONGEST_LINE,
    as_written,
    bad,
    checked_lines,
    checked_rows,
    good,
    with_date,
    within,
)
from pipeline.window import Window
from proxy.telemetry.usage.events import UsageEvent, encode
from tests.support.messages.usage_events import HOUR_MS, START_MS, counts, make_event, write_lines
from tests.support.tables import read_rows

Frame = Callable[..., DataFrame]
RunJob = Callable[..., Result]
NOW_MS = START_MS + 720 * HOUR_MS
LATEST_MS = NOW_MS + 24 * HOUR_MS
AHEAD = "interval_start_ms is more than a day in the future"
NO_EVENT = "is no JSON object of an event"
TWICE = "has a key twice"


def compact(event: dict[str, Any]) -> str:
    """Return the event as the proxy writes it."""
    return json.dumps(event, separators=(",", ":"))


def of_size(size: int) -> str:
    """Return a line of this many bytes. Its last field is a long one that readers do not know."""
    line = compact({**make_event(), "later": ""})
    pairs, rest = divmod(size - len(line), 2)
    return line.replace('"later":""', f'"later":"{"x" * rest}{"é" * pairs}"')


def with_twice(name: str, value: str) -> list[str]:
    """Return an event with a key twice, as the proxy writes it, with spaces, and with an escape."""
    texts = [compact(make_event()), json.dumps(make_event()), json.dumps(make_event(proxy="back\\slash"))]
    return [text.replace(f'"{name}"', f'"{name}":{value},"{name}"') for text in texts]


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
    ({**make_event(), "interval_start_ms": LATEST_MS + 1}, AHEAD),
    ({**make_event(), "partition": -1}, "partition is negative"),
    ({**make_event(), "api": ""}, "api is empty"),
    ({**make_event(), "user": 5}, "user is missing or no string"),
    ({**make_event(), "client_id": {"a": 1}}, "client_id is missing or no string"),
    ({**make_event(), "topic": True}, "topic is missing or no string"),
    (json.dumps({**make_event(), "user": 5}).replace("user", r"us\u0065r"), "user is missing or no string"),
    (json.dumps(make_event()) + " and more", "is no JSON object of an event"),
    (json.dumps(make_event()) + "," + json.dumps(make_event()), "is no JSON object of an event"),
    ({"a": 1}, "is no JSON object of an event"),
    (json.dumps(make_event()).replace('"', "'"), "is no JSON object of an event"),
    (compact({**make_event(), "user": 5}), "user is missing or no string"),
    (compact(make_event()) + "}", "is no JSON object of an event"),
    ({**make_event(), "partition": "x"}, "topic, partition or quota is of a wrong type"),
    ({**make_event(), "partition": 1 << 31}, "topic, partition or quota is of a wrong type"),
    ({**make_event(), "bytes_in": "5"}, "bytes_in is missing or no bigint"),
    (json.dumps(make_event(bytes_in=777)).replace("777", "1e3"), "bytes_in is missing or no bigint"),
    ({**make_event(), "user": {"a": None}}, "user is missing or no string"),
    ("null", NO_EVENT),
    (compact(make_event()) + "], [1", NO_EVENT),
    (json.dumps(make_event()) + ', "end"], [1', NO_EVENT),
    (json.dumps([make_event()]), NO_EVENT),
    (json.dumps([make_event(), make_event(partition=1)]), NO_EVENT),
    *[(line, TWICE) for line in with_twice("bytes_in", "5")],
    *[(line, TWICE) for line in with_twice("user", '"bob"')],
    *[(line, TWICE) for line in with_twice("quota", "null")],
    (json.dumps(make_event()).replace('"quota"', '"later": {"a": 1, "a": 2}, "quota"'), TWICE),
    (json.dumps(make_event(user="twice")).replace("user", r"us\u0065r", 1)[:-1] + ', "user": "bob"}', TWICE),
    (of_size(LONGEST_LINE + 1), "is longer than 1,048,576 bytes"),
    ("[" * 3_000_000, "is longer than 1,048,576 bytes"),
]


def test_what_is_no_event_is_quarantined_with_its_reason(
    run_job: RunJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.transforms.events.time", SimpleNamespace(time=lambda: NOW_MS / 1000))
    events: list[dict[str, Any] | str] = [
        make_event(),
        {**make_event(), "interval_start_ms": LATEST_MS},
        of_size(LONGEST_LINE),
    ]
    lines = write_lines(tmp_path / "events.jsonl", [*events, *[line for line, _ in BAD]])
    result = run_job("usage", "--events", lines, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    quarantine = read_rows(tmp_path / "out/quarantine")
    assert sorted(row.reason for row in quarantine) == sorted(reason for _, reason in BAD)
    beginnings = {
        f"{of_size(LONGEST_LINE + 1)[:1000]}... (1048577 bytes)",
        f"{'[' * 1000}... (3000000 bytes)",
    }
    assert {row.raw for row in quarantine} >= {"no json", "", "[1]", *beginnings}
    assert counts(result.output, "read") == [len(events) + len(BAD)]
    assert counts(result.output, str(tmp_path / "out/quarantine")) == [len(BAD)]
    assert len(read_rows(tmp_path / "out/usage")) == 2


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


def test_the_form_of_lines_that_takes_the_least_time_is_that_of_the_proxy(frame: Frame) -> None:
    events = [make_event(quota="x", user="zoë, 'x'"), make_event(topic=None, partition=None)]
    written = frame(*events).select(as_written("")).collect()
    assert [row[0] for row in written] == [encode(UsageEvent(**event)).value.decode() for event in events]


def test_a_table_of_events_is_a_source_as_well(frame: Frame, run_job: RunJob, tmp_path: Path) -> None:
    good, bad = make_event(), make_event(at=10_000, requests=-5)
    frame(good, bad).write.parquet(str(tmp_path / "events"))
    result = run_job("usage", "--events", tmp_path / "events", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert read_rows(tmp_path / "out/usage")[0].requests == good["requests"]
    (quarantined,) = read_rows(tmp_path / "out/quarantine")
    assert quarantined.reason == "requests is negative"
    assert '"requests":-5' in quarantined.raw


def test_rows_are_checked_like_lines(frame: Frame) -> None:
    """Columns of other types are cast; a value that the cast loses is missing."""
    table = frame(make_event(), make_event(requests=-1), make_event(partition=None)).select(
        *[F.col(name).cast("string") for name in EVENT.names], F.lit(5).cast("bigint").alias(PLACE)
    )
    broken = table.withColumn("bytes_in", F.lit("many"))
    checked = checked_rows(table.unionByName(broken))
    assert bad(checked).columns == QUARANTINE.names
    assert sorted(row.reason for row in bad(checked).collect()) == [
        "bytes_in is missing or no bigint",
        "bytes_in is missing or no bigint",
        "bytes_in is missing or no bigint",
        "requests is negative",
    ]
    events = good(checked).collect()
    assert sorted(str(row.partition) for row in events) == ["0", "None"]
    assert {row[PLACE] for row in events} == {5}
    assert [json.loads(row.raw)["requests"] for row in events] == [10, 10]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("partition", "3e9D", "partition is no int"),
        ("partition", "2147483648L", "partition is no int"),
        ("partition", "'many'", "partition is no int"),
        ("partition", "0.5D", "partition is no int"),
        ("partition", "3D", None),
        ("partition", "double('NaN')", None),
        ("requests", "1.5D", "requests is missing or no bigint"),
        ("requests", "7D", None),
        ("requests", "CAST(7 AS DECIMAL(20, 0))", None),
    ],
)
def test_no_number_is_changed_by_the_cast(frame: Frame, name: str, value: str, reason: str | None) -> None:
    """Some programs write numbers as doubles, with NaN for null."""
    table = frame(make_event()).withColumns({name: F.expr(value), PLACE: F.lit(0).cast("bigint")})
    (row,) = checked_rows(table).collect()
    assert row.reason == reason
    if reason == "partition is no int":
        (read,) = table.select("partition").collect()
        assert json.loads(row.raw)["partition"] == read.partition
    elif value.endswith("D"):
        assert row[name] == (None if reason else float(value[:-1]))


def test_events_of_a_window_begin_in_it(frame: Frame) -> None:
    events = frame(*[make_event(at=HOUR_MS * step, bytes_in=step) for step in range(4)])

    def found(start: int | None, end: int | None) -> list[int]:
        window = Window(*[None if hour is None else START_MS + hour * HOUR_MS for hour in (start, end)])
        return sorted(row.bytes_in for row in within(events, window).collect())

    assert found(None, None) == [0, 1, 2, 3]
    assert found(1, None) == [1, 2, 3]
    assert found(None, 3) == [0, 1, 2]
    assert found(1, 3) == [1, 2]


def test_the_date_of_an_event_is_that_of_its_beginning_in_utc(frame: Frame) -> None:
    table = with_date(frame(make_event(at=12 * HOUR_MS - 1), make_event(at=12 * HOUR_MS)))
    assert table.columns == STORED_EVENT.names
    assert sorted(row.date for row in table.collect()) == [date(2025, 12, 31), date(2026, 1, 1)]
