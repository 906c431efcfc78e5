"""Tables with an `hour`: Parquet folders under --out, partitioned by `date`, which a run replaces by date.

A run replaces the dates for which it has rows, and, in a window with both ends, all other dates of the window
too. Of a date that the window covers in part, the hours outside the window stay.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.storage.dates import DATE, Dates
from pipeline.storage.filesystem import FilePath, literal
from pipeline.storage.swaps import WHOLE, Swap
from pipeline.storage.tables import table_folder
from pipeline.window import Window

_FOLDER: Final = re.compile(rf"{DATE}=(\d{{4}}-\d\d-\d\d)")
_OLD_FOLDER: Final = re.compile(rf"\.({DATE}=.*)\.old")


@dataclass(frozen=True, slots=True)
class Written:
    """What a run wrote: its own rows, as the table has them, and the dates that have no rows after it."""

    folder: str
    rows: DataFrame
    removed: list[date]


class History:
    """A table by date, and what a run adds to it. `whole_days`: a row stands for a day."""

    def __init__(
        self, table: DataFrame, out: str, name: str, window: Window, *, whole_days: bool = False
    ) -> None:
        self._table: Final = table.withColumn(DATE, F.col("hour").cast(DATE))
        self._dates: Final = Dates(window, whole_days)
        self._folder: Final = FilePath(table.sparkSession, table_folder(out, name))
        self._aside: Final = self._folder.beside("new")
        self._swap: Final = Swap(self._folder, self._aside)

    def write(self) -> Written:
        """Write the rows of this run.

        The new dates are written aside. When they are whole, they take the places of the old ones, one after
        the other. If this process is killed, each date of the table is the old one or the new one, or
        missing; the next run puts the other new dates in their places, too.
        """
        self._repair()
        before = _dates(self._folder)
        try:
            by_date = self._table.hint("rebalance", DATE)
            by_date.write.mode("overwrite").partitionBy(DATE).parquet(str(self._aside))
            computed = _dates(self._aside)
            gone = {day for day in before - computed if self._dates.replaces(day)}
            self._keep_others(before, computed | gone)
        except BaseException:
            self._aside.delete()
            raise
        self._put(before, gone)
        of_run = F.col(DATE).isin(sorted(computed)) & self._dates.has_hour()
        return Written(str(self._folder), self._read().where(of_run), sorted(gone - _dates(self._folder)))

    def _repair(self) -> None:
        self._swap.finish()
        for name in self._folder.names():
            found = _OLD_FOLDER.fullmatch(name)
            if found:
                self._folder.child(found[1]).repair()

    def _keep_others(self, before: set[date], replaced: set[date]) -> None:
        """Write aside the rows of the table that stay, but whose files do not: the hours outside the window
        of the replaced dates, and the other dates of a table that is not by date.
        """
        if before:
            edges = self._dates.edges(replaced & before)
            if not edges:
                return
            stays = F.col(DATE).isin(edges) & ~self._dates.has_hour()
        elif self._folder.has_files(".parquet"):
            stays = ~(self._dates.are(replaced) & self._dates.has_hour())
        else:
            return
        self._read().where(stays).write.mode("append").partitionBy(DATE).parquet(str(self._aside))

    def _put(self, before: set[date], gone: set[date]) -> None:
        """Put the dates that were written aside in their places, and remove those that are gone."""
        after = _dates(self._aside)
        if before and (before - gone or after):
            self._swap.run(map(_folder, sorted(after)), map(_folder, sorted(gone - after)))
            return
        if not after:
            # Spark reads a table without dates only if it has a file.
            nothing = self._table.sparkSession.createDataFrame([], self._table.schema)
            nothing.write.mode("overwrite").parquet(str(self._aside))
        self._swap.run([WHOLE])

    def _read(self) -> DataFrame:
        found = self._table.sparkSession.read.schema(self._table.schema).parquet(literal(str(self._folder)))
        return found.withColumn(DATE, F.col("hour").cast(DATE))


def _dates(folder: FilePath) -> set[date]:
    """The dates that a table has."""
    found = [_FOLDER.fullmatch(name) for name in folder.names()]
    return {date.fromisoformat(each[1]) for each in found if each}


def _folder(day: date) -> str:
    return f"{DATE}={day.isoformat()}"
