"""Parquet files that tasks read with Arrow: the same tables and counts as with Spark's reader."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from click.testing import Result
from pyspark.sql import SparkSession

from pipeline.storage import arrow_files, summed_files, tables
from pipeline.storage.arrow_files import leave_little_to_java, period_of, pieces
from pipeline.storage.formats import PARQUET
from pipeline.storage.sources import Source
from pipeline.storage.tables import Events, Quality, all_events
from pipeline.transforms import hours, tenants, throttle
from pipeline.window import Window
from tests.support.messages.event_tables import as_table, random_events
from tests.support.messages.usage_events import HOUR_MS, START_MS, make_event
from tests.support.tables import read_rows

RunJob = Callable[..., Result]
SUMMED = [
    (hours.SUMS[hours.HOUR], all_events, all_events),
    (hours.SUMS[hours.DAY], all_events, all_events),
    (tenants.SUMS, all_events, tenants.added),
    (throttle.SUMS, throttle.bound, throttle.added),
]
"""What is summed, of which events, and how the sums of the tasks are added up."""
NAMES = ("a", "b c", "d%20e", "f#g", "h+i", "j[k]")


def write(folder: Path, events: Iterable[Mapping[str, Any]], name: str = "events", **options: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(as_table(events), folder / f"{name}.parquet", **options)
    return folder


@pytest.mark.parametrize("summing", SUMMED)
@pytest.mark.parametrize("window", [Window(), Window(START_MS + 600_000, START_MS + 4_000_000)])
def test_a_table_is_that_of_sparks_reader(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, summing: Any, window: Window
) -> None:
    """Also which of two events counts, and what is in quarantine, whatever the names of the files."""
    events = random_events(Random(3), 300)
    events += [make_event(bytes_in=-1), make_event(api=""), make_event(partition=-1), make_event(v=2)]
    for place, name in enumerate(NAMES):
        write(tmp_path / "in", events[place :: len(NAMES)], name, row_group_size=7)
    found = []
    for reader in ("arrow", "arrow-shuffled", "spark"):
        if reader == "arrow-shuffled":
            monkeypatch.setattr(summed_files, "_MOST_WAITING", 0)
        if reader == "spark":
            monkeypatch.setattr(tables, "pieces", lambda *_: None)
        source = Events(spark, Source(PARQUET, str(tmp_path / "in")), window)
        assert bool(source.pieces()) == (reader != "spark")
        sums, some, added = summing
        table = added(source.sums(sums, some))
        rows = sorted(str(row) for row in table.collect())
        quality = source.quarantine(str(tmp_path / reader))
        assert quality.read == len(events)
        assert quality.contradicting > 0
        found.append(
            (rows, quality, source.period(), sorted(map(str, read_rows(tmp_path / reader / "quarantine"))))
        )
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) > 3


def test_pieces_are_row_groups(spark: SparkSession, tmp_path: Path) -> None:
    """Other files are Spark's: on another file system, of other columns, or broken."""
    events = [make_event(at=10_000 * number) for number in range(10)]
    write(tmp_path / "in", events, row_group_size=4)
    write(tmp_path / "in", [make_event()], "other", compression="gzip", write_statistics=False)
    found = pieces(spark, Source(PARQUET, str(tmp_path / "in")), Window())
    assert found is not None
    assert sorted(
        (Path(piece.file).name, piece.first, list(piece.groups), piece.rows, piece.starts) for piece in found
    ) == [
        ("events.parquet", 0, [0, 1, 2], 10, (START_MS, START_MS + 90_000)),
        ("other.parquet", 0, [0], 1, None),
    ]
    assert len({piece.place for piece in found}) == 2
    assert pieces(spark, Source(PARQUET, "hdfs://nowhere/in"), Window()) is None
    write(tmp_path / "by-cluster/cluster=x", [make_event()])
    assert pieces(spark, Source(PARQUET, str(tmp_path / "by-cluster")), Window()) is None
    table = as_table([make_event()])
    texts = table.set_column(0, "v", table.column("v").cast(pa.string()))
    for other in (texts, table.drop_columns(["user"]), table.append_column("user", table.column("user"))):
        (tmp_path / "others").mkdir(exist_ok=True)
        pq.write_table(other, tmp_path / "others/x.parquet")
        assert pieces(spark, Source(PARQUET, str(tmp_path / "others")), Window()) is None
    (tmp_path / "others/x.parquet").write_bytes(b"PAR1")
    assert pieces(spark, Source(PARQUET, str(tmp_path / "others")), Window()) is None


@pytest.mark.parametrize("rows", [1, 9, 30])
def test_a_file_that_another_program_replaces_is_named(tmp_path: Path, rows: int) -> None:
    """Of the new file, the job would count some rows."""
    file = write(tmp_path, [make_event(requests=1)] * 9, row_group_size=3) / "events.parquet"
    (piece,) = arrow_files._pieces_of(str(file), 0, 0) or []
    assert sum(len(table) for table in arrow_files.read_tables(piece)) == 9
    write(tmp_path, [make_event(requests=1_000_000)] * rows, row_group_size=3)
    with pytest.raises(OSError, match=r"replaced.*events\.parquet"):
        list(arrow_files.read_tables(piece))


def test_a_page_with_a_wrong_checksum_is_an_error(tmp_path: Path) -> None:
    """A bit has changed on the disk. Spark's reader would notice it, too, from Hadoop's file of checksums."""
    file = write(tmp_path, [make_event(bytes_in=7_000_007)], write_page_checksum=True) / "events.parquet"
    (piece,) = arrow_files._pieces_of(str(file), 0, 0) or []
    written = file.read_bytes()
    number = (7_000_007).to_bytes(8, "little")
    assert number in written
    file.write_bytes(written.replace(number, (9_000_009).to_bytes(8, "little"), 1))
    with pytest.raises(OSError, match=r"events\.parquet"):
        list(arrow_files.read_tables(piece))


def test_names_of_files_are_those_on_disk(spark: SparkSession, tmp_path: Path) -> None:
    for name in (*NAMES, "é", "e\u0301", "n\nl", "100%", "a?b*", "x{y}", "q\"'"):
        write(tmp_path / "in", [make_event()], name)
    assert len(pieces(spark, Source(PARQUET, str(tmp_path / "in")), Window()) or []) == len(NAMES) + 7


def test_large_texts_and_short_numbers_fit(spark: SparkSession, tmp_path: Path) -> None:
    table = as_table([make_event(), make_event(at=10_000)])
    names = table.column_names
    columns = {name: table.column(name) for name in names}
    columns["user"] = columns["user"].cast(pa.large_string())
    columns["client_id"] = columns["client_id"].dictionary_encode()
    columns["interval_ms"] = columns["interval_ms"].cast(pa.int32())
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "in/x.parquet")
    write(tmp_path / "in", [make_event(at=20_000)], "y")
    source = Events(spark, Source(PARQUET, str(tmp_path / "in")), Window())
    assert source.pieces()
    (row,) = tenants.added(source.sums(tenants.SUMS)).collect()
    assert (row.user, row.client_id, row.requests) == ("alice", "billing", 30)
    assert source.quarantine(str(tmp_path / "out")) == Quality(read=3, bad=0, contradicting=0)


def test_java_has_little_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If tasks read the files, and these are small."""
    file = write(tmp_path / "in", [make_event()]) / "events.parquet"
    write(tmp_path / "in/_temporary", [], "unfinished")
    assert leave_little_to_java(str(tmp_path / "in"))
    assert leave_little_to_java(str(file))
    assert not leave_little_to_java(str(tmp_path / "in/_temporary/nothing"))
    monkeypatch.setattr(arrow_files, "_FEW_BYTES", file.stat().st_size - 1)
    assert not leave_little_to_java(str(tmp_path / "in"))
    monkeypatch.undo()
    file.write_bytes(b"PAR1")
    assert not leave_little_to_java(str(tmp_path / "in"))


def test_fewer_rows_are_read_together_if_texts_are_long(spark: SparkSession, tmp_path: Path) -> None:
    events = [make_event(client_id=f"{number:06}" * 20_000) for number in range(3)]
    write(tmp_path / "in", [make_event()] * 20, "short", row_group_size=7)
    write(tmp_path / "in", events, "long", use_dictionary=False)
    found = pieces(spark, Source(PARQUET, str(tmp_path / "in")), Window())
    assert found is not None
    together = {Path(piece.file).stem: piece.together for piece in found}
    assert together["short"] == 500_000
    assert 1_000 < together["long"] < 1_200


WINDOWS = [
    Window(start, end)
    for start in (None, START_MS - 1, START_MS + 1, START_MS + HOUR_MS, START_MS + 2 * HOUR_MS)
    for end in (None, START_MS, START_MS + 1, START_MS + 2 * HOUR_MS)
]


@pytest.mark.parametrize("window", WINDOWS)
def test_statistics_tell_the_period(spark: SparkSession, tmp_path: Path, window: Window) -> None:
    """The one that the events have, without an action."""
    write(tmp_path / "in", [make_event(at=at) for at in (0, 20_000, HOUR_MS)], row_group_size=1)
    write(tmp_path / "in", [make_event(at=HOUR_MS - 1, interval_ms=60_000)], "longer")
    source = Events(spark, Source(PARQUET, str(tmp_path / "in")), window)
    table = source.sums(tenants.SUMS)
    known = source.known_period()
    assert known is not None
    assert known == source.period()
    table.collect()
    seen = source._seen.get() if source._seen else {}
    start, end = window.start_ms, window.end_ms
    assert known == Window(seen["first"] if start is None else start, seen["end"] if end is None else end)


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({"interval_ms": 9_999}, {}),
        ({"requests": -1}, {}),
        ({"api": ""}, {}),
        ({"user": None}, {}),
        ({}, {"write_statistics": False}),
    ],
)
def test_the_period_is_unknown_without_proof(
    spark: SparkSession, tmp_path: Path, more: dict[str, Any], options: dict[str, Any]
) -> None:
    write(tmp_path / "in", [make_event()])
    write(tmp_path / "in", [make_event(), make_event(**more)], "more", **options)
    found = pieces(spark, Source(PARQUET, str(tmp_path / "in")), Window())
    assert found is not None
    assert period_of(found, Window()) is None
    assert period_of(found, Window(1, 2)) == Window(1, 2)
    assert period_of(found[:0], Window(1, None)) == Window(1, None)
