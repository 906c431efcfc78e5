"""Files on any file system of Hadoop: here the local one, and a mount table that has another scheme."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import Result
from pyspark.sql import SparkSession

from pipeline.errors import PipelineError
from pipeline.storage.filesystem import FilePath
from tests.pipeline.jobs.test_report import GOLDEN
from tests.support.messages.usage_events import counts, make_event, write_lines
from tests.support.tables import read_rows

RunJob = Callable[..., Result]


@pytest.fixture(params=["path", "file", "viewfs"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, mounted: str) -> str:
    """The test's folder by its path, and by two URLs."""
    return {"path": str(tmp_path), "file": tmp_path.as_uri(), "viewfs": mounted}[request.param]


def test_a_file_is_written_whole_and_read(spark: SparkSession, tmp_path: Path, folder: str) -> None:
    file = FilePath(spark, f"{folder}/deeper/note.json")
    assert not file.exists()
    for text in ("first", "second ä"):
        file.write_text(text)
        assert file.read_text() == text
    assert str(file) == f"{folder}/deeper/note.json"
    assert not {".note.json.new", ".note.json.old"} & {path.name for path in (tmp_path / "deeper").iterdir()}
    file.delete()
    assert not file.exists()
    file.delete()


def test_a_file_replaces_another(spark: SparkSession, tmp_path: Path, folder: str) -> None:
    for name in ("table", ".table.new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.parquet").touch()
    table = FilePath(spark, f"{folder}/table/")
    table.beside("new").replace(table)
    assert [path.name for path in tmp_path.iterdir()] == ["table"]
    assert [path.name for path in (tmp_path / "table").iterdir()] == [".table.new.parquet"]


def test_a_replacement_that_was_killed_is_repaired(spark: SparkSession, tmp_path: Path, folder: str) -> None:
    """Between two renames only the file aside is there; after both, what is aside is out of date."""
    (tmp_path / ".note.old").write_text("before")
    note = FilePath(spark, f"{folder}/note")
    note.repair()
    assert note.read_text() == "before"
    (tmp_path / ".note.old").write_text("out of date")
    note.repair()
    assert note.read_text() == "before"


def test_a_file_that_cannot_be_renamed_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HDFS says so with False; the local file system raises."""
    one, other = (FilePath(spark, str(tmp_path / name)) for name in ("one", "other"))
    monkeypatch.setattr(one, "_files", SimpleNamespace(rename=lambda source, target: False))
    with pytest.raises(PipelineError) as failed:
        one.move_to(other)
    assert str(tmp_path / "one") in str(failed.value)
    assert str(tmp_path / "other") in str(failed.value)


def test_files_that_spark_reads(spark: SparkSession, tmp_path: Path, folder: str) -> None:
    """Not those whose names, or whose folders' names, begin with an underscore or a dot."""
    table = FilePath(spark, f"{folder}/table")
    assert not table.has_files()
    for name in ("_temporary/0/a.parquet", ".b.parquet", "_SUCCESS"):
        (tmp_path / "table" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "table" / name).touch()
    assert not table.has_files()
    for name in ("date=2026-01-01/a.parquet", "notes.txt"):
        (tmp_path / "table" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "table" / name).touch()
    assert table.has_files()
    assert table.has_files(".parquet")
    assert not table.has_files(".csv")
    assert str(table.only_file(".parquet")) == f"{folder}/table/date=2026-01-01/a.parquet"


@pytest.mark.parametrize("scheme", ["file", "viewfs"])
def test_what_is_there_already_is_not_added_to_a_url(
    run_job: RunJob, tmp_path: Path, mounted: str, scheme: str
) -> None:
    url = mounted if scheme == "viewfs" else tmp_path.as_uri()
    write_lines(tmp_path / "lines/events.jsonl", [make_event(), make_event(partition=1), "no event"])
    for _ in range(2):
        result = run_job("ingest", "--events", f"{url}/lines", "--out", f"{url}/out")
        assert result.exit_code == 0, result.output
        assert len(read_rows(tmp_path / "out/events")) == 2
        assert len(read_rows(tmp_path / "out/quarantine")) == 1
    result = run_job("recommend", "--events", f"{url}/out/events", "--out", f"{url}/out", "--samples", 1)
    assert result.exit_code == 0, result.output
    assert "alice" in (tmp_path / "out/quotas.yaml").read_text()


def test_a_name_is_no_pattern(run_job: RunJob, tmp_path: Path) -> None:
    """Beside it is a folder that the pattern would match."""
    name = "a[b]{c,d}*? %20,e"
    for folder in (name, "abcxy"):
        write_lines(tmp_path / folder / "in/events.jsonl", [make_event(user=folder)])
    root = tmp_path / name
    quotas = root / "quotas.yaml"
    quotas.write_text("quotas: {clients: [{entity: {user: <default>}, producer_byte_rate: 1000}]}")
    ingested = ("--events", root / "out/events", "--out", root / "out")
    for arguments in (
        *[("ingest", "--events", root / "in", "--out", root / "out")] * 2,
        ("report", *ingested, "--quotas", quotas),
    ):
        result = run_job(*arguments)
        assert result.exit_code == 0, result.output
        assert counts(result.output, "events read") == [1]
    for table in ("events", "usage", "headroom"):
        assert [row.user for row in read_rows(root / "out" / table)] == [name]
    assert name in (root / "out/usage.csv").read_text()


def test_files_at_a_url(run_job: RunJob, tmp_path: Path, mounted: str) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    result = run_job("report", "--events", lines, "--out", mounted)
    assert result.exit_code == 0, result.output
    for file in ("usage.csv", "report.html"):
        assert "alice" in (tmp_path / file).read_text()
    cluster = GOLDEN.parents[2] / "config/pipeline/cluster.json"
    assert run_job("reassign", "--cluster", cluster, "--out", mounted).exit_code == 0
    assert "move_ratio" in (tmp_path / "plan.json").read_text()


def test_a_url_without_files(run_job: RunJob, tmp_path: Path, mounted: str) -> None:
    result = run_job("usage", "--events", f"{mounted}/nothing", "--out", tmp_path)
    assert result.exit_code == 2
    assert f"{mounted}/nothing" in result.output
