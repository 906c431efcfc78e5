"""Joins the small files of a table by date into large ones.

Only the job that writes the table does this, between its writes. A large file is added before the small ones
are deleted, so a run that is killed between the two leaves events twice. Every job counts an event once, and
the next compaction ends what the killed one began.
"""

import json
from typing import Final

from pyspark.sql import SparkSession

from pipeline.schema import IDENTITY
from pipeline.storage.dates import DATE
from pipeline.storage.filesystem import FilePath, literal

SMALL_BYTES: Final = 32 << 20
"""Smaller files are joined."""
LARGE_BYTES: Final = 128 << 20
"""About the size of a joined file."""
MANY: Final = 16
"""The number of small files of a date that are left alone."""


def compact_parquet(spark: SparkSession, folder: str) -> int:
    """Join the small files of each date of a table of events; return the number of files that are gone."""
    path, gone = FilePath(spark, folder), 0
    for name in path.names():
        if name.startswith(f"{DATE}="):
            gone += _compact_date(spark, path.child(name))
    return gone


def _compact_date(spark: SparkSession, date: FilePath) -> int:
    """Join the small files of one date; return the number of files that are gone."""
    aside, note = date.beside("new"), date.beside("joining")
    _end(date, note, aside)
    small = {name: size for name, size in date.sizes(".parquet").items() if size < SMALL_BYTES}
    if len(small) <= MANY:
        return 0
    rows = spark.read.parquet(*[literal(str(date.child(name))) for name in small])
    # The number of files is at least one, and the hash of a tenant decides in which of them its events are.
    count = -(-sum(small.values()) // LARGE_BYTES)
    once = rows.dropDuplicates(list(IDENTITY)).repartition(count, "user", "client_id")
    once.sortWithinPartitions("user", "client_id", "interval_start_ms").write.parquet(str(aside))
    joined = _files(aside)
    note.write_text(json.dumps({"small": list(small), "joined": joined}))
    for name in joined:
        aside.child(name).move_to(date.child(name))
    _end(date, note, aside)
    return len(small) - len(joined)


def _end(date: FilePath, note: FilePath, aside: FilePath) -> None:
    """Delete the small files if all joined ones are in their place, or else the joined ones."""
    note.repair()
    if note.exists():
        names = json.loads(note.read_text())
        for name in names["joined" if _files(aside) else "small"]:
            date.child(name).delete()
        # Without the files aside, the note would mean that all are in their place.
        note.delete()
    aside.delete()


def _files(folder: FilePath) -> list[str]:
    return [name for name in folder.names() if name.endswith(".parquet")]
