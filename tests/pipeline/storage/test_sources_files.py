"""Files with events as they occur: empty, unfinished, of other programs, and with unusual names of users."""

import bz2
import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.storage.formats import PARQUET
from pipeline.storage.sources import Source, read_checked
from pipeline.window import make_window
from tests.support.messages.usage_events import HOUR_MS, counts, make_event, write_lines
from tests.support.tables import read_rows

Frame = Callable[..., DataFrame]
RunJob = Callable[..., Result]
DAY_MS = 24 * HOUR_MS
NAMES = ['quo"te', "new\nline", "com,ma", "back\\slash", "tab\t", "=1+1", "", "ü😀"]


def test_a_folder_of_files_that_are_being_written(run_job: RunJob, tmp_path: Path) -> None:
    """A line that is not whole yet is quarantined, and is an event once it is whole. One is not UTF-8."""
    folder, out = tmp_path / "in", tmp_path / "out"
    write_lines(folder / "users.jsonl", [make_event(user=name) for name in NAMES])
    (folder / "empty.jsonl").touch()
    (folder / "latin-1.jsonl").write_bytes(b"caf\xe9\n")
    (folder / "one.jsonl").write_text(json.dumps(make_event(user="no newline")))
    whole = json.dumps(make_event(user="unfinished"))
    growing = folder / "growing.jsonl"
    growing.write_text(f"{json.dumps(make_event(user='windows'))}\r\n{whole[:100]}")
    users = []
    for _ in range(2):
        result = run_job("ingest", "--events", folder, "--out", out)
        assert result.exit_code == 0, result.output
        users.append({row.user for row in read_rows(out / "events")})
        growing.write_text(f"{json.dumps(make_event(user='windows'))}\r\n{whole}\n")
    assert users[0] == {*NAMES, "no newline", "windows"}
    assert users[1] == users[0] | {"unfinished"}
    assert {row.raw for row in read_rows(out / "quarantine")} == {whole[:100], "caf\ufffd"}
    assert len(read_rows(out / "quarantine")) == 2


def test_every_file_of_a_folder_counts_once(run_job: RunJob, tmp_path: Path) -> None:
    """Whatever its name, its folder, its compression, and its line ends. A second run adds nothing."""
    folder, out, mark = tmp_path / "in", tmp_path / "out", b"\xef\xbb\xbf"
    names = [
        "a,b",
        "a b",
        "a#b",
        "a%20b",
        "a%b",
        "a?b*[c]{d}",
        "a\\b",
        "x/same",
        "y/same",
        "date=2026-01-01/same",
    ]
    forms: list[tuple[str, Callable[[bytes], bytes]]] = [
        *[(f"{name}.jsonl", bytes) for name in names],
        ("bom.jsonl", lambda lines: mark + lines),
        ("crlf.jsonl", lambda lines: lines.replace(b"\n", b"\r\n")),
        ("end.jsonl", lambda lines: lines.removesuffix(b"\n")),
        ("packed.jsonl.gz", lambda lines: gzip.compress(mark + lines)),
        ("twice.jsonl.gz", lambda lines: gzip.compress(lines) + gzip.compress(lines)),
        ("packed.jsonl.bz2", bz2.compress),
        ("packed.jsonl.deflate", zlib.compress),
    ]
    for number, (name, change) in enumerate(forms):
        lines = [json.dumps(make_event(partition=2 * number + step)) + "\n" for step in range(2)]
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(change("".join(lines).encode()))
    for name, content in (("empty.jsonl", b""), ("empty.gz", b""), ("packed.gz", gzip.compress(b""))):
        (folder / name).write_bytes(content)
    for _ in range(2):
        result = run_job("ingest", "--events", folder, "--out", out)
        assert result.exit_code == 0, result.output
        found = sorted(row.partition for row in read_rows(out / "events"))
        assert found == list(range(2 * len(forms)))
        assert not (out / "quarantine").exists()


def test_folders_without_events_are_empty(run_job: RunJob, tmp_path: Path) -> None:
    """Also one with what a killed job of Spark has left."""
    for name, left in (("empty", ""), ("lines", "_temporary/0/a.jsonl"), ("table", "_temporary/0/a.parquet")):
        (tmp_path / name).mkdir()
        if left:
            write_lines(tmp_path / name / left, [make_event()])
        result = run_job("throttle", "--events", tmp_path / name, "--out", tmp_path / "out" / name)
        assert result.exit_code == 0, result.output
        assert counts(result.output, "events read") == [0]


@pytest.mark.parametrize(
    "name", ["broken.gz", "changed.gz", "text.gz", "_hidden.jsonl", ".hidden.jsonl", "a:b.jsonl"]
)
def test_a_file_that_cannot_be_read_is_named(run_job: RunJob, tmp_path: Path, name: str) -> None:
    """The job writes nothing."""
    lines = "".join(json.dumps(make_event(at=10_000 * step)) + "\n" for step in range(500)).encode()
    packed = bytearray(gzip.compress(lines))
    packed[len(packed) // 2] ^= 0xFF
    content = {"broken.gz": gzip.compress(lines)[:-20], "changed.gz": bytes(packed)}.get(name, lines)
    write_lines(tmp_path / "in/other.jsonl", [make_event()])
    (tmp_path / "in" / name).write_bytes(content)
    events = tmp_path / "in" / name if "hidden" in name else tmp_path / "in"
    result = run_job("ingest", "--events", events, "--out", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert name in result.output.splitlines()[-1]
    assert not list((tmp_path / "out").rglob("*.parquet"))


def test_parquet_files_of_other_programs(run_job: RunJob, frame: Frame, tmp_path: Path) -> None:
    """An unknown column is ignored, and a null where there must be a value is quarantined."""
    table = frame(make_event(), make_event(at=10_000)).selectExpr("*", "'x' AS region", "1 AS date")
    table.selectExpr(
        "* EXCEPT (user)", "IF(bytes_in > 0 AND interval_start_ms % 60000 = 0, user, NULL) AS user"
    ).write.parquet(str(tmp_path / "in"))
    result = run_job("usage", "--events", tmp_path / "in", "--out", tmp_path / "out", "--from", "2025-12-31")
    assert result.exit_code == 0, result.output
    assert counts(result.output, "events read") == [2]
    (bad,) = read_rows(tmp_path / "out/quarantine")
    assert bad.reason == "user is missing or no string"
    frame(make_event(at=20_000)).selectExpr("* EXCEPT (bytes_in)", "'many' AS bytes_in").write.mode(
        "append"
    ).parquet(str(tmp_path / "in"))
    result = run_job("usage", "--events", tmp_path / "in", "--out", tmp_path / "out")
    assert result.exit_code in (1, 2), result.output
    assert result.output.splitlines()[-1].startswith("quota-pipeline: ")
    assert ".parquet" in result.output.splitlines()[-1]


@pytest.mark.parametrize("version", ["int", "bigint"])
def test_parquet_files_in_folders_count(run_job: RunJob, frame: Frame, tmp_path: Path, version: str) -> None:
    """As lines in folders do. Spark by itself would read only the file at the top. It reads those whose
    version is a bigint.
    """
    folder = tmp_path / "in"
    for place, below in enumerate((".", "2025", "2025/12/31")):
        event = frame(make_event(at=10_000 * place)).withColumn("v", F.lit(1).cast(version))
        event.write.mode("append").parquet(str(folder / below))
    result = run_job("usage", "--events", folder, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert [row.requests for row in read_rows(tmp_path / "out/usage")] == [30]


@pytest.mark.parametrize("older", ["a", "z"])
def test_older_files_without_a_column_that_may_be_null(
    run_job: RunJob, frame: Frame, tmp_path: Path, older: str
) -> None:
    """Whichever file is the first."""
    folder = tmp_path / "in"
    frame(make_event()).drop("quota").write.parquet(str(folder / older))
    frame(make_event(at=10_000)).write.parquet(str(folder / "m"))
    result = run_job("usage", "--events", folder, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert [row.requests for row in read_rows(tmp_path / "out/usage")] == [20]
    assert not (tmp_path / "out/quarantine").exists()


def test_an_interval_over_midnight_and_over_the_change_of_a_clock(run_job: RunJob, tmp_path: Path) -> None:
    """An interval counts in the hour in which it begins. Hours are of UTC, so no clock change doubles one."""
    before_midnight = 12 * HOUR_MS - 5000
    summer_ends = 1_761_440_400_000
    """2025-10-26T01:00:00Z."""
    events = [make_event(at=before_midnight, interval_ms=10_000)]
    events += [make_event(interval_start_ms=summer_ends + half * HOUR_MS // 2) for half in range(-2, 4)]
    lines = write_lines(tmp_path / "events.jsonl", events)
    assert run_job("usage", "--events", lines, "--out", tmp_path).exit_code == 0
    rows = read_rows(tmp_path / "usage")
    assert sorted((str(row.hour), str(row.date), row.requests) for row in rows) == [
        ("2025-10-26 00:00:00", "2025-10-26", 20),
        ("2025-10-26 01:00:00", "2025-10-26", 20),
        ("2025-10-26 02:00:00", "2025-10-26", 20),
        ("2025-12-31 23:00:00", "2025-12-31", 10),
    ]


def test_dates_that_are_not_near_the_window_are_not_read(
    spark: SparkSession, run_job: RunJob, tmp_path: Path
) -> None:
    days = [make_event(at=day * DAY_MS, requests=day + 1) for day in range(6)]
    assert (
        run_job("ingest", "--events", write_lines(tmp_path / "e.jsonl", days), "--out", tmp_path).exit_code
        == 0
    )
    source, window = Source(PARQUET, str(tmp_path / "events")), make_window("2026-01-03", "2026-01-04")
    checked = read_checked(spark, source, window)
    assert {row.requests for row in checked.collect()} == {3, 4, 5}
    assert {row.requests for row in read_checked(spark, source).collect()} == {1, 2, 3, 4, 5, 6}
    result = run_job(
        "usage", "--events", source.place, "--out", tmp_path, "--from", "2026-01-03", "--to", "2026-01-04"
    )
    assert counts(result.output, "events read") == [3]
    assert [row.requests for row in read_rows(tmp_path / "usage")] == [4]
