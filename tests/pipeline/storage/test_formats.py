"""Formats of tables: how a folder tells its format, and what Spark needs for each."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.storage.formats import DELTA, EXTENSIONS, ICEBERG, PARQUET, format_of, packages, settings


@pytest.mark.parametrize(
    ("file", "form"),
    [
        ("_delta_log/00000000000000000000.json", DELTA),
        ("metadata/v1.metadata.json", ICEBERG),
        ("date=2026-01-01/part-0.parquet", PARQUET),
        ("metadata/notes.txt", None),
        ("date=2026-01-01/.part-0.parquet", None),
    ],
)
def test_a_folder_tells_its_format(spark: SparkSession, tmp_path: Path, file: str, form: str | None) -> None:
    assert format_of(spark, f"{tmp_path}/table") is None
    path = tmp_path / "table" / file
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert format_of(spark, f"{tmp_path}/table") == form


def test_two_formats_in_one_session() -> None:
    """A job may read one and write the other."""
    both = settings([DELTA, ICEBERG, PARQUET], "/lake")
    assert len(both[EXTENSIONS].split(",")) == 2
    assert both["spark.sql.catalog.quota_lake.warehouse"] == "/lake"
    assert len(packages([DELTA, ICEBERG, DELTA, PARQUET])) == 2
    assert settings([PARQUET, "lines", "kafka"], "/lake") == {}
    assert packages([PARQUET, "lines", "kafka"]) == []
