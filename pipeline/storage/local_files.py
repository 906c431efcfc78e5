"""Lists the files of a local table as Spark does, without a query of Spark."""

import os
import re
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from pipeline.storage.dates import DATE, is_near
from pipeline.storage.filesystem import HIDDEN, FilePath
from pipeline.transforms.duplicates import place_of_hash
from pipeline.window import Window

_PLAIN: Final = re.compile(r"[A-Za-z0-9._/=+-]+")
"""Paths that are the same in a URL."""
_DATE_FOLDER: Final = re.compile(rf"{DATE}=(\d{{4}}-\d\d-\d\d)")
_SPECIAL: Final = re.compile(r"_metadata|_common_metadata|_spark_metadata|_.*=|.*\._COPYING_$")
"""Names that Spark does not handle as those of other hidden files."""
_SEED: Final = 42
"""Of Spark's xxhash64()."""


class _Unknown(Exception):
    """Only Spark knows which files it would read."""


def list_files(spark: SparkSession, place: str, window: Window, most: int) -> list[tuple[str, int]] | None:
    """Return the path and PLACE of each file that Spark reads at a place, of dates near the window if the
    table is partitioned by date. None if only Spark can tell, or if there are more than `most`.
    """
    if not FilePath(spark, place).is_local():
        return None
    try:
        found = list(_files(Path(place), window))
    except (_Unknown, OSError):
        return None
    if len(found) > most or not all(map(_PLAIN.fullmatch, found)):
        return None
    hashed = _hashes(spark, [f"file:{file}" for file in found])
    return [(file, place_of_hash(each)) for file, each in zip(found, hashed, strict=True)]


def _files(place: Path, window: Window) -> Iterator[str]:
    if place.is_file():
        if place.name.startswith(HIDDEN):
            raise _Unknown
        yield str(place)
        return
    files, folders = _entries(place)
    if not folders:
        yield from files
        return
    days = {folder: _DATE_FOLDER.fullmatch(os.path.basename(folder)) for folder in folders}
    if files:
        raise _Unknown
    for folder, found in days.items():
        if found is None:
            raise _Unknown
        of_day, below = _entries(Path(folder))
        if below:
            raise _Unknown
        try:
            day = date.fromisoformat(found[1])
        except ValueError:
            raise _Unknown from None
        if is_near(day, window):
            yield from of_day


def _entries(folder: Path) -> tuple[list[str], list[str]]:
    """Return the files and the folders in a folder that are not hidden."""
    files, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if _SPECIAL.match(entry.name):
                raise _Unknown
            if entry.name.startswith(HIDDEN):
                continue
            if entry.is_file():
                files.append(entry.path)
            elif entry.is_dir():
                folders.append(entry.path)
            else:
                raise _Unknown
    return files, folders


def _hashes(spark: SparkSession, texts: Iterable[str]) -> list[int]:
    """Return Spark's xxhash64() of each text."""
    jvm: Any = spark.sparkContext._jvm
    # The class has static methods of the same names, which py4j may find or not.
    hashing = jvm.org.apache.spark.sql.catalyst.expressions.XXH64(_SEED)
    offset = jvm.org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET
    coded = [text.encode() for text in texts]
    return [hashing.hashUnsafeBytes(text, offset, len(text)) for text in coded]
