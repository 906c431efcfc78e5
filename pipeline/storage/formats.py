"""The formats of tables: Parquet, Delta Lake and Apache Iceberg, and what Spark needs for each."""

from collections.abc import Iterable
from typing import Final

from pyspark.sql import SparkSession

from pipeline.storage.filesystem import FilePath

PARQUET: Final = "parquet"
DELTA: Final = "delta"
ICEBERG: Final = "iceberg"
FORMATS: Final = (PARQUET, DELTA, ICEBERG)
CATALOG: Final = "quota_lake"
"""The Iceberg catalog of the tables under --out."""
PACKAGES: Final = {
    DELTA: "io.delta:delta-spark_2.13:4.0.0",
    ICEBERG: "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
}
"""For Spark 4.0. The first job that uses one fetches it from Maven Central."""
LOGS: Final = {DELTA: "_delta_log/*.json", ICEBERG: "metadata/*.metadata.json"}
"""The files of a table's log, below the table's folder."""
EXTENSIONS: Final = "spark.sql.extensions"


def settings(forms: Iterable[str], out: str) -> dict[str, str]:
    """Return Spark's settings for tables in these formats, without the packages."""
    wanted = set(forms)
    found: dict[str, str] = {}
    extensions = []
    if DELTA in wanted:
        extensions.append("io.delta.sql.DeltaSparkSessionExtension")
        found["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    if ICEBERG in wanted:
        extensions.append("org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        catalog = f"spark.sql.catalog.{CATALOG}"
        found[catalog] = "org.apache.iceberg.spark.SparkCatalog"
        found |= {f"{catalog}.type": "hadoop", f"{catalog}.warehouse": out}
    if extensions:
        found[EXTENSIONS] = ",".join(extensions)
    return found


def packages(forms: Iterable[str]) -> list[str]:
    """Return the Maven coordinates of what Spark needs for tables in these formats."""
    return [PACKAGES[form] for form in sorted(set(forms)) if form in PACKAGES]


def format_of(spark: SparkSession, folder: str) -> str | None:
    """Return the format of the table in the folder; None if there is no table."""
    path = FilePath(spark, folder)
    for form, log in LOGS.items():
        below, _, pattern = log.partition("/*")
        if any(name.endswith(pattern) for name in path.child(below).names()):
            return form
    return PARQUET if path.has_files(".parquet") else None
