"""Spark's Python workers come from the daemon of this package."""

import zipimport
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import SparkSession

from pipeline.spark import python_daemon


def test_workers_keep_the_directories_of_zip_files(spark: SparkSession) -> None:
    """A worker of Spark's own daemon has the function of zipimport."""

    def keeper(tables: Iterable[Any]) -> Iterator[Any]:
        for table in tables:
            yield table.assign(keeper=zipimport.zipimporter.invalidate_caches.__name__)

    (row,) = spark.range(1).mapInPandas(keeper, "id bigint, keeper string").collect()
    assert row.keeper == python_daemon.keep_directory.__name__
