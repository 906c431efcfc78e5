"""Duplicates: an event counts once, and of events that contradict each other the first one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.schema import EVENT
from pipeline.storage.sources import LINES, Source, read_checked
from pipeline.transforms.duplicates import CONTRADICTED, CONTRADICTION, PLACE, contradictions, deduplicate
from tests.support.messages.usage_events import counts, make_event, write_lines
from tests.support.tables import read_rows

Frame = Callable[..., DataFrame]
RunJob = Callable[..., Result]


def counted(table: DataFrame) -> list[tuple[int, bool]]:
    return sorted((row.bytes_in, row[CONTRADICTED]) for row in table.collect())


def test_an_event_counts_once_however_often_it_came(frame: Frame) -> None:
    events = [make_event(), make_event(topic=None, partition=None), make_event(api="Fetch", quota="x")]
    unique = deduplicate(frame(*events, *events, *events))
    assert counted(unique) == [(1000, False)] * 3
    as_read = {tuple(row[name] for name in EVENT.names) for row in unique.collect()}
    assert as_read == {tuple(event.values()) for event in events}


@pytest.mark.parametrize("change", [{"quota": "x"}, {"bytes_in": 1}, {"bytes_in": 10**9}, {"interval_ms": 5}])
def test_the_first_of_two_events_counts(frame: Frame, change: dict[str, Any]) -> None:
    """`quota` is no part of the identity."""
    for first, second in ((make_event(), make_event(**change)), (make_event(**change), make_event())):
        (row,) = (
            deduplicate(frame(first, second, first, make_event(partition=1)).repartition(1))
            .where("partition = 0")
            .collect()
        )
        assert {name: row[name] for name in EVENT.names} == first
        assert row[CONTRADICTED]


def test_an_event_of_an_earlier_run_is_the_first(frame: Frame) -> None:
    known = frame(make_event(bytes_in=7), make_event(at=10_000, quota="x"), make_event(at=20_000))
    unique = deduplicate(
        frame(make_event(), make_event(bytes_in=7), make_event(at=10_000), make_event(at=30_000)), known
    )
    found = sorted(
        (row.interval_start_ms % 60_000, row.is_known, row[CONTRADICTED]) for row in unique.collect()
    )
    assert found == [(0, True, True), (10_000, True, True), (30_000, False, False)]
    read = frame(make_event(), make_event(bytes_in=7)).selectExpr("*", "string(bytes_in) AS raw")
    assert [tuple(row) for row in contradictions(read, known).collect()] == [("1000", CONTRADICTION)]


def test_each_file_has_its_own_place(spark: SparkSession, tmp_path: Path) -> None:
    """The names are chosen so that the lower 20 bits of the hashes of their paths are the same."""
    paths = F.concat(F.lit(f"file:{tmp_path}/"), F.col("id"))
    found = spark.range(5000).groupBy(F.xxhash64(paths).bitwiseAND((1 << 20) - 1)).agg(F.collect_list("id"))
    alike = next(row[1] for row in found.collect() if len(row[1]) > 1)
    for name in alike:
        write_lines(tmp_path / str(name), [make_event()])
    lowest = F.xxhash64("_metadata.file_path").bitwiseAND((1 << 20) - 1)
    assert spark.read.text(str(tmp_path)).select(lowest).distinct().count() == 1
    places = read_checked(spark, Source(LINES, str(tmp_path))).select(PLACE).collect()
    assert len({row[0] for row in places}) == len(places) == len(alike)


@pytest.mark.parametrize("job", ["usage", "ingest"])
def test_the_job_quarantines_what_contradicts(run_job: RunJob, tmp_path: Path, job: str) -> None:
    """A run counts the same event each time, also where the two are in different files."""
    first, second = make_event(bytes_in=5, quota="x"), make_event(bytes_in=4)
    lines = write_lines(tmp_path / "in/1.jsonl", [make_event(partition=1), first, second, second])
    write_lines(tmp_path / "in/2.jsonl", [make_event(at=10_000, bytes_in=6), make_event(partition=1)])
    write_lines(tmp_path / "in/3.jsonl", [make_event(at=10_000, bytes_in=7)])
    kept = set()
    for _ in range(2):
        result = run_job(job, "--events", lines.parent, "--out", tmp_path / "out")
        assert result.exit_code == 0, result.output
        assert counts(result.output, "events read") == [7]
        assert counts(result.output, str(tmp_path / "out/quarantine")) == [3]
        rows = read_rows(tmp_path / "out" / ("events" if job == "ingest" else job))
        kept.add(sum(row.bytes_in for row in rows) - 1000 - 5)
    assert kept in ({6}, {7})
    quarantined = read_rows(tmp_path / "out/quarantine")
    assert len(quarantined) == (2 if job == "ingest" else 3)
    assert {row.reason for row in quarantined} == {CONTRADICTION}
    assert sum('"bytes_in": 4,' in row.raw for row in quarantined) == (1 if job == "ingest" else 2)
