"""Runs that are killed before each of their changes of files: the next run neither loses nor doubles rows.

From the moment at which a run is killed, it changes no file, also where it would clean up after an error.
"""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from click.testing import Result
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.lake import compaction
from pipeline.lake.history import History
from pipeline.storage.filesystem import FilePath
from pipeline.storage.tables import write_table
from pipeline.transforms.events import with_date
from pipeline.window import ALWAYS, make_window
from tests.support.messages.usage_events import HOUR_MS, START_MS, make_event, write_lines
from tests.support.tables import read_rows

Rows = Counter[tuple[str, int]]
CHANGES: Final = ("move_to", "delete", "create")
"""The methods by which jobs change files. Spark's own writes go to folders that nobody reads yet, except
those that append.
"""
MOST_STEPS: Final = 40
DAY_MS: Final = 24 * HOUR_MS


class Killed(NamedTuple):
    """The rows that a killed run left, and those after the next run."""

    left: Rows
    after: Rows


class Dead(BaseException):
    """The run is killed."""


def ends_by_itself(run: Callable[[], object], step: int) -> bool:
    """Run until the change of files with this number, from 0; whether there are no more changes."""
    left = step

    def counted(method: Callable[..., None]) -> Callable[..., None]:
        def change(path: FilePath, *arguments: Any) -> None:
            nonlocal left
            if method.__name__ == "create" or path.exists():
                if left == 0:
                    raise Dead
                left -= 1
            method(path, *arguments)

        return change

    with pytest.MonkeyPatch.context() as patched:
        for name in CHANGES:
            patched.setattr(FilePath, name, counted(getattr(FilePath, name)))
        try:
            run()
        except Dead:
            return False
    return True


def kill_at_each_step(run: Callable[[], object], folder: Path, read: Callable[[], Rows]) -> list[Killed]:
    """Kill a run before each step, from the same state of the folder, and then run to the end."""
    before, found = folder.with_name("before"), []
    shutil.copytree(folder, before)
    for step in range(MOST_STEPS):
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
        ended = ends_by_itself(run, step)
        left = read()
        run()
        found.append(Killed(left, read()))
        assert not [path for path in folder.rglob(".*") if path.suffix != ".crc"]
        if ended:
            assert step > 1
            return found
    raise AssertionError(f"more than {MOST_STEPS} steps")


def rows_of(folder: Path) -> Rows:
    """The number of requests of each row, with its date if the table has one."""
    found = read_rows(folder) if list(folder.rglob("*.parquet")) else []
    return Counter((str(row.asDict().get("date")), row.requests) for row in found)


def by_date(rows: Rows) -> dict[str, Rows]:
    dates = {row[0] for row in rows}
    return {date: Counter({row: number for row, number in rows.items() if row[0] == date}) for date in dates}


@pytest.fixture
def table(spark: SparkSession) -> Callable[..., DataFrame]:
    """Make a table with the hour and the requests of each event."""

    def make(events: dict[int, int]) -> DataFrame:
        rows = [((START_MS + at) // 1000, requests) for at, requests in events.items()]
        shape = "seconds bigint, requests bigint"
        return spark.createDataFrame(rows, shape).select(
            F.timestamp_seconds("seconds").alias("hour"), "requests"
        )

    return make


def test_each_date_has_the_rows_of_one_run(table: Callable[..., DataFrame], tmp_path: Path) -> None:
    """Of the first date, the window has a part; the second has new rows, the third none, and the fourth is
    outside. A date is missing if the run is killed between its two renames.
    """
    folder = tmp_path / "out"
    old = table({0: 1, HOUR_MS: 2, DAY_MS: 3, 2 * DAY_MS: 4, 3 * DAY_MS: 5})
    History(old, str(folder), "usage", ALWAYS).write()
    window = make_window("2025-12-31T13:00", "2026-01-03")
    new = table({HOUR_MS: 20, DAY_MS: 30})
    killed = kill_at_each_step(
        lambda: History(new, str(folder), "usage", window).write(), folder, lambda: rows_of(folder / "usage")
    )
    dates = ("2025-12-31", "2026-01-01", "2026-01-02", "2026-01-03")
    before, after = (
        {date: {(date, number): 1 for number in numbers} for date, numbers in zip(dates, found, strict=True)}
        for found in (((1, 2), (3,), (4,), (5,)), ((1, 20), (30,), (), (5,)))
    )
    for each in killed:
        assert by_date(each.after) == {date: rows for date, rows in after.items() if rows}
        for date, rows in by_date(each.left).items():
            assert rows in (before[date], after[date])
        assert len(by_date(each.left)) >= 3 or each.left == killed[-1].after
    assert by_date(killed[0].left) == before


def test_a_table_has_the_rows_of_one_run(table: Callable[..., DataFrame], tmp_path: Path) -> None:
    """It is missing if the run is killed between the two renames."""
    folder = tmp_path / "out"
    write_table(table({0: 1}), str(folder), "bill")
    killed = kill_at_each_step(
        lambda: write_table(table({0: 2}), str(folder), "bill"), folder, lambda: rows_of(folder / "bill")
    )
    assert [sorted(each.left.values()) for each in killed].count([]) == 1
    assert {number for each in killed for _, number in each.left} == {1, 2}
    assert {number for each in killed for _, number in each.after} == {2}


def test_compaction_loses_no_event_and_the_next_one_doubles_none(
    spark: SparkSession, frame: Callable[..., DataFrame], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The joined files are too large to be joined again."""
    folder = tmp_path / "events"
    events = with_date(frame(*[make_event(user=f"user-{each}", requests=each) for each in range(6)]))
    events.coalesce(1).write.option("maxRecordsPerFile", 1).partitionBy("date").parquet(str(folder))
    size = max(path.stat().st_size for path in folder.rglob("*.parquet"))
    monkeypatch.setattr(compaction, "MANY", 2)
    monkeypatch.setattr(compaction, "SMALL_BYTES", size + 1)
    monkeypatch.setattr(compaction, "LARGE_BYTES", 3 * size)
    once = rows_of(folder)
    assert sorted(once.values()) == [1] * 6
    killed = kill_at_each_step(
        lambda: compaction.compact_parquet(spark, str(folder)), folder, lambda: rows_of(folder)
    )
    assert all(each.left >= once and each.after == once for each in killed)
    assert any(each.left > once for each in killed)


def kill_in_commit(table: Path, *left: Path) -> None:
    """Put files of a table back to where they were when Spark began to move the files of a finished task."""
    for file in left:
        unmoved = table / "_temporary/0/task_202601010000000000000000_0001_m_000000" / file.relative_to(table)
        unmoved.parent.mkdir(parents=True, exist_ok=True)
        file.rename(unmoved)
    (table / "_SUCCESS").unlink()


@pytest.mark.parametrize("moved", [0, 2])
def test_what_a_killed_run_did_not_append_is_appended_once(
    run_job: Callable[..., Result], tmp_path: Path, moved: int
) -> None:
    """Spark moves the files of a write to the table one after the other, and was killed after the first."""
    events = [make_event(at=day * DAY_MS, requests=day + 1) for day in range(3)]
    lines, out = write_lines(tmp_path / "events.jsonl", [*events, "no event"]), tmp_path / "out"
    ingest = "ingest", "--events", lines, "--out", out
    assert run_job(*ingest).exit_code == 0
    whole = rows_of(out / "events")
    assert sorted(requests for _, requests in whole) == [1, 2, 3]
    kill_in_commit(out / "events", *sorted((out / "events").rglob("*.parquet"))[moved:])
    kill_in_commit(out / "quarantine", *(out / "quarantine").glob("*.parquet"))
    result = run_job(*ingest)
    assert result.exit_code == 0, result.output
    assert rows_of(out / "events") == whole
    assert [row.raw for row in read_rows(out / "quarantine")] == ["no event"]
    assert not (out / "events/_temporary").exists()
