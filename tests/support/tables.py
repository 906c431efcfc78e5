"""Reads tables that jobs wrote with pyarrow, as other programs do, so that Spark need not plan a query."""

from pathlib import Path
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import dataset
from pyspark.sql import Row

# Spark writes times as INT96, which are nanoseconds otherwise.
_PARQUET: Final = dataset.ParquetFileFormat(
    read_options=dataset.ParquetReadOptions(coerce_int96_timestamp_unit="us")
)
_BY_DATE: Final = dataset.partitioning(pa.schema([("date", pa.date32())]), flavor="hive")


def read_table(folder: Path) -> Any:
    """Return the Parquet table in a folder, which may be partitioned by date. Times are without a zone, in
    UTC.
    """
    by_date = next(folder.glob("date=*"), None) is not None
    return dataset.dataset(folder, format=_PARQUET, partitioning=_BY_DATE if by_date else None).to_table()


def read_rows(folder: Path) -> list[Row]:
    """Return the rows of the Parquet table in a folder."""
    return [Row(**row) for row in read_table(folder).to_pylist()]
