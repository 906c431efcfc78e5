"""The batches of a stream: each event once, whatever batch is repeated, and late events apart."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.jobs.stream_batches import Batches, Sums
from pipeline.lake.lake import Lake
from pipeline.storage import tables
from pipeline.transforms.duplicates import CONTRADICTION, PLACE
from pipeline.transforms.events import with_date
from pipeline.window import Window
from tests.support.messages.usage_events import HOUR_MS, START_MS, make_event
from tests.support.tables import read_rows

MINUTE_MS = 60_000
Records = Callable[..., DataFrame]


@pytest.fixture
def records(spark: SparkSession) -> Records:
    """Make the lines of a batch, in this order, from events and texts."""

    def make(*events: dict[str, Any] | str) -> DataFrame:
        texts = [event if isinstance(event, str) else json.dumps(event) for event in events]
        shape = f"raw string, {PLACE} bigint"
        return spark.createDataFrame([(text, place) for place, text in enumerate(texts)], shape)

    return make


def batches(spark: SparkSession, out: Path, window: Window | None = None) -> Batches:
    """The batches of one run; events are late after ten minutes."""
    return Batches(Lake(spark, str(out)), str(out / "_checkpoint"), window or Window(), 10 * MINUTE_MS)


def sizes(out: Path, table: str = "events") -> list[int]:
    """Each event's `bytes_in`, which identifies it here."""
    if not (out / table).exists():
        return []
    return sorted(row.bytes_in for row in read_rows(out / table))


def event(minute: int, **values: object) -> dict[str, Any]:
    return make_event(at=minute * MINUTE_MS, **{"bytes_in": minute, **values})


def test_a_repeated_batch_adds_nothing(spark: SparkSession, records: Records, tmp_path: Path) -> None:
    """Spark repeats the batch of a run that was stopped, with the same number."""
    batch = records(*[event(minute) for minute in range(5)], event(4), "no event")
    for run in (batches(spark, tmp_path), batches(spark, tmp_path)):
        found = run.write(batch, 7)
        assert found == run.sums
        assert (found.read, found.bad, found.late, found.contradicting) == (7, 1, 0, 0)
    assert sizes(tmp_path) == [0, 1, 2, 3, 4]
    assert len(read_rows(tmp_path / "quarantine")) == 1


def test_late_events_are_kept_apart(spark: SparkSession, records: Records, tmp_path: Path) -> None:
    """An event is late by the batches before its own: within a batch none makes another late."""
    run = batches(spark, tmp_path)
    assert run.write(records(event(60), event(1)), 0).late == 0
    assert run.write(records(event(50), event(49), event(61)), 1).late == 1
    assert (sizes(tmp_path), sizes(tmp_path, "late")) == ([1, 50, 60, 61], [49])
    assert run.sums == Sums(read=5, late=1)
    # A run that starts anew takes the newest event from the table.
    assert batches(spark, tmp_path).write(records(event(52), event(50, partition=1)), 2).late == 1


def test_a_repeated_batch_finds_the_same_events_late(
    spark: SparkSession, records: Records, tmp_path: Path
) -> None:
    """The first attempt has written a newer event, which must not make the others late."""
    run = batches(spark, tmp_path)
    run.write(records(event(10)), 0)
    run.write(records(event(60)), 1)
    assert batches(spark, tmp_path).write(records(event(60), event(30)), 1).late == 0
    assert sizes(tmp_path) == [10, 30, 60]


def test_an_event_of_the_future_makes_no_other_late(
    spark: SparkSession, records: Records, tmp_path: Path
) -> None:
    now = round(time.time() * 1000) - START_MS
    run = batches(spark, tmp_path)
    run.write(records(make_event(at=now + HOUR_MS, bytes_in=1)), 0)
    assert run.write(records(make_event(at=now - MINUTE_MS, bytes_in=2)), 1).late == 0
    assert (
        batches(spark, tmp_path).write(records(make_event(at=now - MINUTE_MS, bytes_in=3, broker=9)), 2).late
        == 0
    )
    assert sizes(tmp_path) == [1, 2, 3]


def test_a_table_without_events_makes_none_late(
    spark: SparkSession, records: Records, frame: Callable[..., DataFrame], tmp_path: Path
) -> None:
    """A run of ingest without --stream writes one if it finds no events."""
    with_date(frame()).write.parquet(str(tmp_path / "events"))
    assert batches(spark, tmp_path).write(records(event(1)), 0) == Sums(read=1)
    assert sizes(tmp_path) == [1]


def test_an_event_that_contradicts_a_stored_one_is_quarantined(
    spark: SparkSession, records: Records, tmp_path: Path
) -> None:
    run = batches(spark, tmp_path)
    run.write(records(event(1)), 0)
    assert run.write(records({**event(1), "bytes_in": 5}, event(2)), 1).contradicting == 1
    assert sizes(tmp_path) == [1, 2]
    (row,) = read_rows(tmp_path / "quarantine")
    assert (row.reason, json.loads(row.raw)["bytes_in"]) == (CONTRADICTION, 5)


def test_no_other_run_writes_the_quarantine_table_meanwhile(
    spark: SparkSession, records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of its write, it would remove what the stream has written to `_temporary`."""
    counts: list[int] = []

    @contextmanager
    def counted(out: str, name: str, *, wait: bool) -> Iterator[None]:
        assert (out, name, wait) == (str(tmp_path), "quarantine", True)
        counts.append(quarantined(tmp_path))
        yield
        counts.append(quarantined(tmp_path))

    monkeypatch.setattr(tables, "locked", counted)
    batches(spark, tmp_path).write(records(event(1), {**event(1), "bytes_in": 5}, "no event"), 0)
    assert counts == [0, 1, 1, 2]


def quarantined(out: Path) -> int:
    """The number of rows of the quarantine table."""
    return len(read_rows(out / "quarantine")) if (out / "quarantine").exists() else 0


def test_events_outside_the_window_are_counted_and_dropped(
    spark: SparkSession, records: Records, tmp_path: Path
) -> None:
    run = batches(spark, tmp_path, Window(START_MS + MINUTE_MS, START_MS + 3 * MINUTE_MS))
    assert run.write(records(*[event(minute) for minute in range(5)]), 0) == Sums(read=5)
    assert sizes(tmp_path) == [1, 2]
    assert run.write(records(), 1) == Sums()
    assert run.sums == Sums(read=5)
    # Nor do they make others late.
    run.write(records(event(60)), 2)
    assert run.write(records(event(1, partition=1)), 3).late == 0
    assert sizes(tmp_path) == [1, 1, 2]
