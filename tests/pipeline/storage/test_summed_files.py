"""How the pieces of files are divided among tasks."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession

from pipeline.spark.failures import FAILURES
from pipeline.storage import summed_files
from pipeline.storage.arrow_files import Piece, pieces
from pipeline.storage.formats import PARQUET
from pipeline.storage.sources import Source
from pipeline.storage.summed_files import slices_of, tasks_of
from pipeline.transforms import tenants
from pipeline.transforms.events import EARLIEST_START_MS
from pipeline.window import ALWAYS
from tests.support.messages.event_tables import as_table
from tests.support.messages.usage_events import HOUR_MS, START_MS, make_event

LATEST = START_MS + 1000 * HOUR_MS
FIRST = START_MS // HOUR_MS


def piece(rows: int, first: float = 0, last: float = 0, name: str = "x") -> Piece:
    """A piece with events from one hour to another."""
    starts = (START_MS + round(first * HOUR_MS), START_MS + round(last * HOUR_MS))
    return Piece(name, 0, 0, [0], rows, 500_000, starts, 10_000, 0)


def divided(found: Sequence[Piece], least: int = 2) -> list[tuple[int, int, list[tuple[str, bool]]]]:
    """The hours of each task, and the names of its pieces, with whether it counts their rows."""
    slices = slices_of(found, least, HOUR_MS, LATEST)
    assert slices is not None
    return [
        (
            some.periods.start - FIRST,
            some.periods.stop - FIRST,
            [(each.piece.file, each.is_counted) for each in some.pieces],
        )
        for some in slices
    ]


def test_tasks_have_about_the_same_number_of_rows() -> None:
    found = [piece(rows) for rows in (50, 20, 20, 10, 1)]
    assert sorted(sum(each.rows for each in task) for task in tasks_of(found, 2)) == [50, 51]
    assert [len(task) for task in tasks_of(found, 9)] == [1] * 5
    assert tasks_of(found[:1], 9) == [found[:1]]


def test_a_task_reads_a_part_of_time() -> None:
    """A piece of two parts is read twice, and counted once."""
    found = [piece(10, 4.5, 5.5, "c"), piece(10, 0, 1.5, "a"), piece(10, 1.5, 4.4, "b")]
    assert divided(found) == [
        (0, 3, [("a", True), ("b", True)]),
        (3, 6, [("b", False), ("c", True)]),
    ]
    assert divided(found, 1) == [(0, 6, [("a", True), ("b", True), ("c", True)])]
    hours = [(first, end) for first, end, _ in divided(found, 100)]
    assert hours == [(hour, hour + 1) for hour in range(6)]


@pytest.mark.parametrize("seed", range(20))
def test_every_period_has_a_task_and_every_row_is_counted_once(seed: int) -> None:
    source = Random(seed)
    found = []
    for number in range(source.randrange(1, 30)):
        first = source.uniform(-5, 50)
        found.append(piece(source.randrange(1, 99), first, first + source.uniform(0, 9), str(number)))
    slices = slices_of(found, source.randrange(1, 9), HOUR_MS, LATEST)
    assert slices is not None
    assert all(one.periods.stop == next.periods.start for one, next in pairwise(slices))
    counted = [each.piece.file for some in slices for each in some.pieces if each.is_counted]
    assert sorted(counted) == sorted(each.file for each in found)
    for each in found:
        assert each.starts is not None
        for hour in range(each.starts[0] // HOUR_MS, each.starts[1] // HOUR_MS + 1):
            (some,) = [some for some in slices if hour in some.periods]
            assert each in [mine.piece for mine in some.pieces]


def test_large_tables_have_more_tasks() -> None:
    found = [piece(2_000_000, hour, hour + 0.9) for hour in range(30)]
    assert len(divided(found)) == 6


def test_spark_shuffles_what_does_not_follow_each_other() -> None:
    found = [piece(2_000_000, 0, 5, name) for name in "abc"]
    assert slices_of(found, 2, HOUR_MS, LATEST) is not None
    assert slices_of([*found, piece(1, 0, 5)], 2, HOUR_MS, LATEST) is None
    assert slices_of([*found, piece(1, 6, 7)], 2, HOUR_MS, LATEST) is not None
    assert slices_of([replace(found[0], starts=None)], 2, HOUR_MS, LATEST) is None


def test_times_that_no_event_has_do_not_count() -> None:
    """One event of 1970 or 2199 makes no tasks of all the hours between."""
    odd = replace(piece(10), starts=(-(1 << 63), (1 << 63) - 1))
    slices = slices_of([odd], 2, HOUR_MS, LATEST)
    assert slices is not None
    assert slices[0].periods.start == EARLIEST_START_MS // HOUR_MS
    assert slices[-1].periods.stop == LATEST // HOUR_MS + 1


def test_wrong_statistics_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    """Otherwise an event might be missing, or count twice."""
    (tmp_path / "in").mkdir()
    pq.write_table(as_table([make_event(at=at) for at in (0, HOUR_MS)]), tmp_path / "in/x.parquet")
    found = pieces(spark, Source(PARQUET, str(tmp_path / "in")), ALWAYS)
    assert found is not None
    (right,) = found
    table = summed_files.summed_files(spark, [right], tenants.SUMS, ALWAYS)
    assert tenants.added(table.where("cluster is not null")).count() == 1
    wrong = replace(right, starts=(START_MS, START_MS + HOUR_MS - 1))
    with pytest.raises(FAILURES, match=r"statistics of interval_start_ms are wrong in file .*x\.parquet"):
        summed_files.summed_files(spark, [wrong], tenants.SUMS, ALWAYS).collect()
