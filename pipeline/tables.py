"""Tables as Parquet folders below --out."""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from pipeline.sources import Source, read_checked
from pipeline.transforms.events import bad, deduplicate, good, within
from pipeline.window import Window

QUARANTINE_TABLE: Final = "quarantine"


def write_table(table: DataFrame, out: str, name: str) -> str:
    """Writes the table anew, a former one of this name is replaced; returns its folder."""
    folder = f"{out.rstrip('/')}/{name}"
    table.write.mode("overwrite").parquet(folder)
    return folder


@dataclass(frozen=True, slots=True)
class Quality:
    """How much of what was read are events of the window asked for."""

    read: int
    bad: int


class Events:
    """A source's events, and those lines or rows of it that are none."""

    def __init__(self, spark: SparkSession, source: Source, window: Window) -> None:
        self._checked: Final = read_checked(spark, source)
        self._seen = Observation()
        self._window: Final = window

    def events(self) -> DataFrame:
        """Each event of the window once. The first action on this also counts what is read."""
        self._seen = Observation()
        counted = self._checked.observe(
            self._seen, F.count(F.lit(1)).alias("read"), F.count("reason").alias("bad")
        )
        return deduplicate(within(good(counted), self._window))

    def quarantine(self, out: str) -> Quality:
        """After an action on events(): writes what is none, if there is any, and says how many they are."""
        seen = self._seen.get
        quality = Quality(seen["read"], seen["bad"])
        if quality.bad:
            write_table(bad(self._checked), out, QUARANTINE_TABLE)
        return quality
