"""Sources of events: JSON lines, Parquet, or a Kafka topic."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.errors import InputError
from pipeline.schema import EVENT, names
from pipeline.storage.dates import DATE, near
from pipeline.storage.filesystem import HIDDEN, FilePath, literal
from pipeline.storage.formats import DELTA, ICEBERG, LOGS, PARQUET, format_of
from pipeline.transforms.duplicates import PLACE, place_in_files, place_in_iceberg, place_in_topic
from pipeline.transforms.events import checked_lines, checked_rows
from pipeline.window import ALWAYS, Window

LINES: Final = "lines"
FILES: Final = "files"
"""LINES or PARQUET: the files themselves tell, once Spark can list them."""
FORMATS: Final = (LINES, PARQUET, DELTA, ICEBERG)
KAFKA: Final = "kafka"
_START: Final = "interval_start_ms"
_KAFKA: Final = re.compile(r"kafka://([^/]+:\d+(?:,[^/]+:\d+)*)/([a-zA-Z0-9._-]{1,249})")
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]+)://")


@dataclass(frozen=True, slots=True)
class Source:
    """`kind` is one of FORMATS, FILES or KAFKA; `place` is a path, or HOST:PORT of brokers, separated by
    commas; `settings` are Kafka client settings, such as security.protocol.
    """

    kind: str
    place: str
    topic: str = ""
    settings: tuple[tuple[str, str], ...] = ()


def parse_source(text: str, settings: tuple[tuple[str, str], ...] = (), form: str | None = None) -> Source:
    """Parse --events: a local file or folder, a URL that Spark can read, or a Kafka topic.

    `form` is one of FORMATS; None: the files tell.
    """
    if not text:
        raise InputError("--events is empty; it takes a file, a folder or kafka://HOST:PORT/TOPIC")
    kafka = _KAFKA.fullmatch(text)
    if kafka:
        return Source(KAFKA, kafka[1], kafka[2], settings)
    if text.startswith("kafka:"):
        raise InputError(f"{text!r} names no topic; write kafka://HOST:PORT/TOPIC")
    text = local_path(text)
    if _SCHEME.match(text):
        return Source(form or FILES, text)
    path = Path(text)
    try:
        if not path.exists():
            raise InputError(
                f"{path} does not exist; --events takes a file, a folder or kafka://HOST:PORT/TOPIC"
            )
        return Source(form or _local_kind(path), str(path.resolve()))
    except OSError as error:
        raise InputError(f"--events {path} cannot be read: {error.strerror}") from error


def local_path(text: str) -> str:
    """Return the path of a file:// URL; other texts stay as they are."""
    return re.sub("^file:(//)?(?=/)", "", text)


def _local_kind(path: Path) -> str:
    if not path.is_dir():
        return PARQUET if path.suffix == ".parquet" else LINES
    for form, log in LOGS.items():
        if next(path.glob(log), None) is not None:
            return form
    _check_one_table(path)
    return PARQUET if next(shown_files(path, ".parquet"), None) is not None else LINES


def _check_one_table(folder: Path) -> None:
    """Raise InputError if some of the Parquet tables in a folder have events and others have not."""
    has_events: dict[bool, list[str]] = {True: [], False: []}
    for below in sorted(folder.iterdir()):
        if not below.is_dir() or below.name.startswith(HIDDEN) or "=" in below.name:
            continue
        file = next(shown_files(below, ".parquet"), None)
        # Jobs say so if a file is damaged.
        with suppress(pa.ArrowException):
            if file is not None:
                has_events[_START in pq.read_schema(file).names].append(below.name)
    some, others = has_events[True], has_events[False]
    if some and others:
        raise InputError(
            f"--events {folder} has the tables {', '.join(sorted([*some, *others]))}, and not all have "
            f"usage events; name one table, such as {folder / some[0]}"
        )


def shown_files(folder: Path, suffix: str) -> Iterator[Path]:
    """Yield the files that Spark reads in a local folder, and in its folders, and whose names have this
    ending. Like Spark, it follows symbolic links.
    """
    for root, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith(HIDDEN))
        yield from (
            Path(root, name)
            for name in sorted(files)
            if name.endswith(suffix) and not name.startswith(HIDDEN)
        )


def read_checked(spark: SparkSession, source: Source, window: Window = ALWAYS) -> DataFrame:
    """Read the event columns, `raw`, PLACE, and `reason`, which is null for an event.

    It reads only dates near the window if the table is partitioned by date.
    """
    if source.kind == FILES:
        source = replace(source, kind=_kind_of(spark, source.place))
    if source.kind != KAFKA and FilePath(spark, source.place).is_ignored():
        raise InputError(
            f"Spark does not read {source.place}, because of the first character of its name; rename the file"
        )
    if source.kind in (PARQUET, DELTA, ICEBERG):
        found = _rows(spark, source, window)
        if source.kind == PARQUET and _missing(found):
            # Spark looks for the columns in one file. Another file may have more of them.
            found = _rows(spark, source, window, merge="true")
        missing = _missing(found)
        if missing:
            raise InputError(
                f"{source.place} has no usage events: the columns {', '.join(missing)} are missing"
            )
        place = place_in_iceberg() if source.kind == ICEBERG else place_in_files()
        return checked_rows(found.select(*names(EVENT), place.alias(PLACE)))
    return checked_lines(read_lines(spark, source))


def _missing(found: DataFrame) -> list[str]:
    return [name for name in names(EVENT) if name not in found.columns]


def _rows(spark: SparkSession, source: Source, window: Window, merge: str | None = None) -> DataFrame:
    if source.kind == PARQUET:
        options = {**layout(spark, source.place), **({} if merge is None else {"mergeSchema": merge})}
        found = spark.read.options(**options).parquet(literal(source.place))
    else:
        found = spark.read.format(source.kind).load(source.place)
    return near_dates(spark, source, window, found)


def layout(spark: SparkSession, place: str) -> dict[str, str]:
    """Return Spark's options for a folder of Parquet files. By default, Spark ignores what is in folders
    that are not those of a partitioned table, such as date=2026-01-31.
    """
    is_partitioned = any("=" in name for name in FilePath(spark, place).names())
    return {} if is_partitioned else {"recursiveFileLookup": "true"}


def near_dates(spark: SparkSession, source: Source, window: Window, found: DataFrame) -> DataFrame:
    """Return what is of dates near the window, if the table is partitioned by date. `found` is what Spark
    finds at the source's place.
    """
    if dict(found.dtypes).get(DATE) != "date":
        return found
    by_date = source.kind in (DELTA, ICEBERG) or any(
        name.startswith(f"{DATE}=") for name in FilePath(spark, source.place).names()
    )
    return found.where(near(window)) if by_date else found


def _kind_of(spark: SparkSession, place: str) -> str:
    files = FilePath(spark, place)
    if not files.exists():
        raise InputError(
            f"{place} does not exist; --events takes a file, a folder or kafka://HOST:PORT/TOPIC"
        )
    return format_of(spark, place) or (PARQUET if place.endswith(".parquet") else LINES)


def is_parquet(spark: SparkSession, source: Source) -> bool:
    """Whether the source is a folder of Parquet files without a log of its own."""
    return (_kind_of(spark, source.place) if source.kind == FILES else source.kind) == PARQUET


def read_lines(spark: SparkSession, source: Source) -> DataFrame:
    """Read `raw`, the text of each line or record, and PLACE."""
    if source.kind == LINES:
        return (
            spark.read.option("recursiveFileLookup", "true")
            .text(literal(source.place))
            .select(F.col("value").alias("raw"), place_in_files().alias(PLACE))
        )
    records = (
        spark.read.format("kafka")
        .options(**kafka_options(source))
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .load()
    )
    return kafka_texts(records)


def stream_lines(spark: SparkSession, source: Source, most: int | None = None) -> DataFrame:
    """Read `raw` and PLACE from a Kafka topic as a stream, with a maximum number of records in a batch."""
    limit = {} if most is None else {"maxOffsetsPerTrigger": str(most)}
    return kafka_texts(
        spark.readStream.format("kafka")
        .options(**kafka_options(source), **limit)
        .option("startingOffsets", "earliest")
        .load()
    )


def kafka_options(source: Source) -> dict[str, str]:
    """Spark's options for the topic. Records that the topic dropped before they were read are an error."""
    return {
        "kafka.bootstrap.servers": source.place,
        "subscribe": source.topic,
        "failOnDataLoss": "true",
        "kafka.isolation.level": "read_committed",
        **{f"kafka.{key}": value for key, value in source.settings},
    }


def kafka_texts(records: DataFrame) -> DataFrame:
    """The record values as `raw`, and PLACE. A record without a value becomes an empty text, which is not an
    event.
    """
    text = F.coalesce(F.col("value").cast("string"), F.lit(""))
    return records.select(text.alias("raw"), place_in_topic().alias(PLACE))
