"""The files that Spark reads, with the places that it gives to their rows."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.storage.formats import PARQUET
from pipeline.storage.local_files import list_files
from pipeline.storage.sources import Source, near_dates
from pipeline.transforms.duplicates import place_in_files
from pipeline.window import ALWAYS, Window

DAYS = ("2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05")


def fill(folder: Path, *names: str) -> str:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return str(folder)


def listed(spark: SparkSession, place: str, window: Window = ALWAYS) -> list[tuple[str, int]]:
    """What Spark says."""
    files = near_dates(spark, Source(PARQUET, place), window, spark.read.format("binaryFile").load(place))
    rows = files.select(F.col("_metadata.file_path").alias("file"), place_in_files().alias("place")).collect()
    return sorted((row.file.removeprefix("file:"), row.place) for row in rows)


def ms(day: str, hour: int = 0) -> int:
    return round(datetime.fromisoformat(day).replace(hour=hour, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    "window",
    [ALWAYS, Window(ms(DAYS[2]), None), Window(None, ms(DAYS[2])), Window(ms(DAYS[2], 5), ms(DAYS[3], 1))],
)
def test_a_table_by_date(spark: SparkSession, tmp_path: Path, window: Window) -> None:
    names = [f"date={day}/{name}" for day in DAYS for name in ("a.parquet", "b.parquet", "_x", ".y.crc")]
    place = fill(tmp_path / "in", *names, "_SUCCESS", "_temporary/0/c.parquet", "date=2026-03-06/_only")
    found = list_files(spark, place, window, 100)
    assert found is not None
    assert sorted(found) == listed(spark, place, window)
    assert len(found) in (10, 8, 6)


def test_a_folder_and_a_file(spark: SparkSession, tmp_path: Path) -> None:
    place = fill(tmp_path / "in+x", "a.parquet", "b-0=1.txt", "_SUCCESS", ".hidden/c.parquet")
    for each in (place, f"{place}/a.parquet"):
        found = list_files(spark, each, ALWAYS, 100)
        assert found is not None
        assert sorted(found) == listed(spark, each)
    assert list_files(spark, place, ALWAYS, 1) is None
    (tmp_path / "empty").mkdir()
    assert list_files(spark, str(tmp_path / "empty"), ALWAYS, 1) == []


@pytest.mark.parametrize(
    "names",
    [
        ("b c.parquet",),
        ("d%20e.parquet",),
        ("sub/a.parquet",),
        ("date=2026-03-01/sub/a.parquet",),
        ("date=2026-03-01/a.parquet", "b.parquet"),
        ("date=2026-03-01/a.parquet", "hour=1/b.parquet"),
        ("date=2026-02-30/a.parquet",),
        ("date=__HIVE_DEFAULT_PARTITION__/a.parquet",),
        ("_spark_metadata/0", "a.parquet"),
        ("_metadata", "a.parquet"),
        ("_date=2026-03-01/a.parquet",),
        ("a.parquet._COPYING_",),
    ],
)
def test_spark_lists_what_only_it_knows(spark: SparkSession, tmp_path: Path, names: tuple[str, ...]) -> None:
    assert list_files(spark, fill(tmp_path / "in", *names), ALWAYS, 100) is None


def test_other_places_are_sparks(spark: SparkSession, tmp_path: Path) -> None:
    place = fill(tmp_path / "in", "a.parquet")
    (tmp_path / "in/b.parquet").symlink_to(tmp_path / "nothing")
    assert list_files(spark, place, ALWAYS, 100) is None
    assert list_files(spark, str(tmp_path / "nowhere"), ALWAYS, 100) is None
    assert list_files(spark, fill(tmp_path, "_hidden.parquet") + "/_hidden.parquet", ALWAYS, 100) is None
