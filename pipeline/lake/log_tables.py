"""Tables of Delta Lake and Apache Iceberg. Each write is one commit of the table's log, so a run that fails
or is killed changes nothing, and readers see the table before or after a run.
"""

from abc import ABC, abstractmethod
from typing import Final

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F

from pipeline.errors import InputError
from pipeline.storage.dates import DATE
from pipeline.storage.filesystem import FilePath, literal
from pipeline.storage.formats import CATALOG, DELTA, ICEBERG


class LogTable(ABC):
    """A table with a log. If it has the column `date`, it is partitioned by it."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The folder or the name, for messages."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is a table."""

    @abstractmethod
    def read(self) -> DataFrame:
        """Return the rows as of now."""

    @abstractmethod
    def replace(self, rows: DataFrame) -> None:
        """Replace the table, or create it."""

    @abstractmethod
    def append(self, rows: DataFrame) -> None:
        """Append to the table, or create it."""

    @abstractmethod
    def overwrite(self, rows: DataFrame, replaced: str) -> None:
        """Replace the rows for which the SQL condition `replaced` on `date` is true. The table must exist."""

    @abstractmethod
    def compact(self) -> None:
        """Join small files."""


class DeltaTable(LogTable):
    """A Delta table in a folder, which a catalog may know by a name."""

    def __init__(self, spark: SparkSession, folder: str, name: str | None) -> None:
        self._spark: Final = spark
        self._folder: Final = folder
        self._name: Final = name

    @property
    def place(self) -> str:
        return self._folder

    def exists(self) -> bool:
        return bool(FilePath(self._spark, f"{self._folder}/_delta_log").names())

    def read(self) -> DataFrame:
        return self._spark.read.format(DELTA).load(self._folder)

    def replace(self, rows: DataFrame) -> None:
        self._save(_by_date(rows).option("overwriteSchema", "true").mode("overwrite"))

    def append(self, rows: DataFrame) -> None:
        self._save(_by_date(rows).mode("append"))

    def overwrite(self, rows: DataFrame, replaced: str) -> None:
        self._save(rows.write.mode("overwrite").option("replaceWhere", replaced))

    def compact(self) -> None:
        self._spark.sql(f"OPTIMIZE delta.{quoted(self._folder)}")

    def _save(self, writer: DataFrameWriter) -> None:
        writer.format(DELTA).save(self._folder)
        if self._name is not None:
            register(self._spark, self._name, DELTA, self._folder)


class IcebergTable(LogTable):
    """An Iceberg table with a name in a catalog."""

    def __init__(self, spark: SparkSession, folder: str, name: str | None) -> None:
        self._spark: Final = spark
        self._name: Final = name or f"{CATALOG}.{quoted(folder.rpartition('/')[2])}"

    @property
    def place(self) -> str:
        return self._name

    def exists(self) -> bool:
        return self._spark.catalog.tableExists(self._name)

    def read(self) -> DataFrame:
        return self._spark.table(self._name)

    def replace(self, rows: DataFrame) -> None:
        writer = rows.writeTo(self._name).using(ICEBERG)
        if DATE in rows.columns:
            writer = writer.partitionedBy(F.col(DATE))
        writer.createOrReplace()

    def append(self, rows: DataFrame) -> None:
        if self.exists():
            rows.writeTo(self._name).append()
        else:
            self.replace(rows)

    def overwrite(self, rows: DataFrame, replaced: str) -> None:
        rows.writeTo(self._name).overwrite(F.expr(replaced))

    def compact(self) -> None:
        catalog, _, name = self._name.partition(".")
        escaped = name.replace("'", "\\'")
        self._spark.sql(f"CALL {catalog}.system.rewrite_data_files(table => '{escaped}')")


def log_table(spark: SparkSession, form: str, folder: str, name: str | None) -> LogTable:
    """Return the table in the folder, or with the name in a catalog."""
    return DeltaTable(spark, folder, name) if form == DELTA else IcebergTable(spark, folder, name)


def register(spark: SparkSession, name: str, form: str, folder: str, *, by_date: bool = False) -> None:
    """Make the table in the folder known to the catalog. Raises InputError if another table has the name.

    `by_date`: the table is partitioned by `date`, which its files do not tell while it has no rows.
    """
    if not spark.catalog.tableExists(name):
        columns = parts = ""
        if by_date:
            found = spark.read.parquet(literal(folder)).schema
            columns = ", ".join(f"{quoted(each.name)} {each.dataType.simpleString()}" for each in found)
            columns, parts = f" ({columns})", f" PARTITIONED BY ({DATE})"
        spark.sql(f"CREATE TABLE {name}{columns} USING {form}{parts} LOCATION {_text(folder)}")
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").where("col_name = 'Location'").collect()
    known = rows[0].data_type if rows else None
    if known is None or not FilePath(spark, known).is_same(FilePath(spark, folder)):
        raise InputError(
            f"the catalog's table {name} is {known or 'no table of files'}, and not {folder}; "
            "choose another --catalog-table"
        )


def quoted(name: str) -> str:
    """The name as an identifier of SQL."""
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _by_date(rows: DataFrame) -> DataFrameWriter:
    return rows.write.partitionBy(DATE) if DATE in rows.columns else rows.write
