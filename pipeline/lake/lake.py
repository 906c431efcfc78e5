"""Lake: the tables of a job under --out, in the format of --format."""

from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.errors import InputError
from pipeline.lake.compaction import compact_parquet
from pipeline.lake.history import History, Written
from pipeline.lake.log_tables import LogTable, log_table, register
from pipeline.storage.dates import DATE, Dates
from pipeline.storage.filesystem import FilePath, literal
from pipeline.storage.formats import PARQUET, format_of
from pipeline.storage.tables import LATE_TABLE, append_parquet, has_rows, table_folder, write_table
from pipeline.window import Window


class Lake:
    """Reads and writes tables by their names. `catalog_table`: the name of the job's table in a catalog."""

    def __init__(
        self, spark: SparkSession, out: str, form: str = PARQUET, catalog_table: str | None = None
    ) -> None:
        self._spark: Final = spark
        self.out: Final = out
        self._form: Final = form
        self._catalog_table: Final = catalog_table

    def exists(self, name: str) -> bool:
        """Whether there is a table."""
        if self._form != PARQUET:
            return self._log_table(name).exists()
        return has_rows(self._spark, table_folder(self.out, name))

    def read(self, name: str) -> DataFrame | None:
        """Return a table; None if there is none."""
        if not self.exists(name):
            return None
        if self._form != PARQUET:
            return self._log_table(name).read()
        return self._spark.read.parquet(literal(table_folder(self.out, name)))

    def replace(self, rows: DataFrame, name: str) -> str:
        """Replace a table by these rows once they are whole; return its place."""
        self.check(name)
        if self._form == PARQUET:
            place = write_table(rows, self.out, name)
            self._register(name)
            return place
        table = self._log_table(name)
        table.replace(rows)
        return table.place

    def append(self, rows: DataFrame, name: str, files: int | None = None) -> str:
        """Append rows that have a `date`; return the table's place."""
        self.check(name)
        few = rows if files is None else rows.coalesce(files)
        if self._form == PARQUET:
            place = append_parquet(few, self.out, name)
            self._register(name, by_date=True)
            return place
        table = self._log_table(name)
        table.append(few)
        return table.place

    def compact(self, name: str) -> None:
        """Join the small files of a table of events, if there is one."""
        if self._form == PARQUET:
            compact_parquet(self._spark, table_folder(self.out, name))
            return
        table = self._log_table(name)
        if table.exists():
            table.compact()

    def replace_dates(self, rows: DataFrame, name: str, window: Window, *, whole_days: bool) -> Written:
        """Replace the rows of the window in a table with an `hour`; see History for what a run replaces."""
        self.check(name)
        if self._form == PARQUET:
            written = History(rows, self.out, name, window, whole_days=whole_days).write()
            self._register(name, by_date=True)
            return written
        return _replace_dates(self._log_table(name), rows, Dates(window, whole_days))

    def _log_table(self, name: str) -> LogTable:
        return log_table(self._spark, self._form, table_folder(self.out, name), self._catalog_name(name))

    def _catalog_name(self, name: str) -> str | None:
        """The name of a table in the catalog. A stream writes two tables."""
        if self._catalog_table is None or name != LATE_TABLE:
            return self._catalog_table
        quote = "`" if self._catalog_table.endswith("`") else ""
        return f"{self._catalog_table.removesuffix('`')}_{LATE_TABLE}{quote}"

    def check(self, name: str) -> None:
        """Raise InputError if the folder has a table in another format, which a write would destroy."""
        folder = table_folder(self.out, name)
        found = format_of(self._spark, folder)
        if found not in (None, self._form):
            raise InputError(
                f"{folder} is a table in the format {found}, and not {self._form}; use another --out, "
                f"or --format {found} if the job has this option"
            )

    def _register(self, name: str, *, by_date: bool = False) -> None:
        folder, known = table_folder(self.out, name), self._catalog_name(name)
        if known is None or not FilePath(self._spark, folder).has_files(".parquet"):
            return
        register(self._spark, known, PARQUET, folder, by_date=by_date)
        if by_date:
            self._spark.sql(f"MSCK REPAIR TABLE {known} SYNC PARTITIONS")
        self._spark.catalog.refreshTable(known)


def _replace_dates(table: LogTable, rows: DataFrame, dates: Dates) -> Written:
    """Replace the dates of a run in a table with a log, in one commit; keep the hours outside its window."""
    dated = rows.withColumn(DATE, F.col("hour").cast(DATE))
    computed = set() if dates.is_bounded else {row[0] for row in dated.select(DATE).distinct().collect()}
    replaced = dates.sql(computed)
    if not table.exists():
        table.replace(dated)
        return Written(table.place, table.read().where(dates.has_hour()), [])
    before = {row[0] for row in table.read().where(replaced).select(DATE).distinct().collect()}
    edges = dates.edges(before)
    if edges:
        stay = table.read().where(F.col(DATE).isin(edges) & ~dates.has_hour())
        dated = dated.unionByName(stay, allowMissingColumns=True)
    table.overwrite(dated, replaced)
    found = table.read().where(replaced)
    after = {row[0] for row in found.select(DATE).distinct().collect()}
    return Written(table.place, found.where(dates.has_hour()), sorted(before - after))
