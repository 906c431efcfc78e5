"""How the pieces of files are divided among tasks."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession

from pipeline.schema import names
from pipeline.spark.failures import FAILURES
from pipeline.storage import arrow_files, summed_files
from pipeline.storage.arrow_files import Piece, pieces
from pipeline.storage.formats import PARQUET
from pipeline.storage.sources import Source
from pipeline.storage.summed_files import slices_of, tasks_of
from pipeline.transforms import hours, tenants, throttle
from pipeline.transforms.arrays.parcels import COUNTED, Counted, Packing
from pipeline.transforms.arrays.summing import Summing
from pipeline.transforms.arrays.valid import are_events
from pipeline.transforms.duplicates import ORDER
from pipeline.transforms.events import EARLIEST_START_MS
from pipeline.window import ALWAYS, Window
from tests.support.messages.event_tables import as_table, random_events
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


def swept(folder: Path, summing: Summing, window: Window, tasks: int) -> tuple[list[str], list[int | None]]:
    """The rows that tasks make of the files in a folder, and what they count."""
    found = [
        piece
        for place, file in enumerate(sorted(folder.glob("*.parquet")))
        for piece in arrow_files._pieces_of(str(file), place << 40, LATEST) or []
    ]
    how = Packing(
        summing.counts, window, 1, partial(are_events, latest_ms=LATEST), are_wanted=summing.are_wanted
    )
    slices = slices_of(found, tasks, HOUR_MS, LATEST)
    assert slices is not None
    numbers = [pa.record_batch({"id": [number]}) for number in range(len(slices))]
    tables = summed_files._swept(numbers, slices, how, summing, LATEST)
    rows = [row for each in tables for row in each.to_pylist()]
    counted = Counted()
    for row in rows:
        counted.add([row.pop(name)] for name in names(COUNTED))
    return sorted(str(row) for row in rows if row["cluster"] is not None), list(counted.values.values())


WINDOWS = [
    ALWAYS,
    Window(START_MS, START_MS + 9 * HOUR_MS),
    Window(START_MS + HOUR_MS // 2, None),
    Window(None, START_MS + HOUR_MS // 2),
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_are_not_wanted_are_not_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, window: Window, seed: int
) -> None:
    """If the statistics prove that they are events of the window; the sums and the counts are the same."""
    events = [{**event, "interval_ms": 10_000} for event in random_events(Random(seed), 200)]
    events += [{**event, "bytes_in": event["bytes_in"] + 1} for event in events[::3]]
    for number in range(4):
        pq.write_table(as_table(events[number::4]), tmp_path / f"{number}.parquet")
    calm = [make_event(at=at) for at in (0, HOUR_MS)]
    pq.write_table(as_table(calm), tmp_path / "calm.parquet")
    whole = swept(tmp_path, replace(throttle.SUMS, positive=()), window, 2)
    assert len(whole[0]) > 3
    assert any("'contradicted': True" in row for row in whole[0])
    if window in WINDOWS[:2]:
        monkeypatch.setattr(summed_files, "read_tables", None)
        monkeypatch.setattr(summed_files, "read_columns", None)
    assert swept(tmp_path, throttle.SUMS, window, 2) == whole


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("summing", [tenants.SUMS, throttle.SUMS, hours.SUMS[hours.HOUR]])
def test_columns_that_are_read_one_by_one_have_the_same_sums(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, window: Window, summing: Summing
) -> None:
    """As those of tables, of which each row is checked. Some files have a row that is no event."""
    events = random_events(Random(1), 300)
    events += [{**event, "bytes_in": event["bytes_in"] + 1} for event in events[::3]]
    for number in range(4):
        some = as_table([*events[number::4], *[make_event(requests=-1)] * (number % 2)])
        pq.write_table(some, tmp_path / f"{number}.parquet")
    summing = replace(summing, positive=())
    found = swept(tmp_path, summing, window, 3)
    assert len(found[0]) > 3
    monkeypatch.setattr(summed_files, "has_short_columns", lambda piece: False)
    assert swept(tmp_path, summing, window, 3) == found


def test_rows_are_checked_without_proof(tmp_path: Path) -> None:
    """A bad one is counted, also where nothing is wanted."""
    pq.write_table(as_table([make_event(), make_event(requests=-1)]), tmp_path / "x.parquet")
    assert swept(tmp_path, throttle.SUMS, ALWAYS, 2) == ([], [2, 1, START_MS, START_MS + 10_000])


def test_many_wanted_rows_are_read_in_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    events = [make_event(at=at, throttle_ms=at % 3) for at in range(9)]
    pq.write_table(as_table(events), tmp_path / "x.parquet", row_group_size=4)
    (one,) = arrow_files._pieces_of(str(tmp_path / "x.parquet"), 1 << 40, LATEST) or []
    found = arrow_files.read_positive(one, throttle.BOUND)
    wanted = [number for number, event in enumerate(events) if event["throttle_ms"]]
    assert found.column(ORDER).to_pylist() == [(1 << 40) + number for number in wanted]
    assert found.drop_columns([ORDER]).to_pylist() == [events[number] for number in wanted]
    assert arrow_files.read_positive(replace(one, together=5), throttle.BOUND) is None
    assert arrow_files.read_positive(replace(one, together=6), throttle.BOUND) is not None
    assert arrow_files.read_positive(replace(one, together=2), throttle.BOUND) is None
    assert len(arrow_files.read_positive(one, ["rejected_bytes"])) == 0
