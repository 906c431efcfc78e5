"""Ingest as a stream: from a Kafka topic to Parquet, exactly once, resuming where the last run ended.

Spark's checkpoint has the offsets that have been read. An interrupted batch is written again, without the
events that its first attempt has written.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.errors import InputError, PipelineError
from pipeline.jobs.job import Job
from pipeline.jobs.stream_batches import Batches
from pipeline.spark.session import LOCAL_SHUFFLE_PARTITIONS, SHUFFLE_PARTITIONS
from pipeline.storage.filesystem import FilePath
from pipeline.storage.sources import KAFKA, stream_lines
from pipeline.storage.tables import (
    EVENTS_TABLE,
    LATE_TABLE,
    events_folder,
    has_sink_log,
    stream_note,
    table_folder,
)

ONCE: Final = "once"
FOLLOW: Final = "follow"
MODES: Final = (ONCE, FOLLOW)
_BATCH_PARTITIONS: Final = "8"
"""spark.sql.shuffle.partitions, unless the user has set it: a batch is small."""
_POLL_SECONDS: Final = 0.2
"""Between two checks whether the query has ended."""
_COMPACT_SECONDS: Final = 3600.0
"""The least time between two compactions of a running stream."""
_NOT_CHOSEN: Final = ("200", LOCAL_SHUFFLE_PARTITIONS)
"""Values that the user has not set: Spark's default, and ours."""
_RECOVER: Final = (
    "Add --recover: the job then reads the topic from its first record, and skips the events that the tables "
    "have"
)
_LOST_RECORDS: Final = ("KAFKA_DATA_LOSS", "failOnDataLoss", "not available in Kafka any more")
"""Texts of Spark's errors when the topic lacks the records after the stream's position."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """`mode`: ONCE ends at the end of the topic. `late`: a Spark interval. `every`: seconds. `recover`:
    give up the position of earlier runs, and read the topic from its beginning. `most`: records of a batch;
    None: all that there are. `compact`: join small files at the end, and once per hour.
    """

    mode: str
    late: str
    every: float
    checkpoint: str | None = None
    recover: bool = False
    most: int | None = None
    compact: bool = False


def run_stream(job: Job, options: StreamOptions) -> None:
    """Run until the end of the topic (ONCE), or until SIGTERM or SIGINT."""
    if job.source.kind != KAFKA:
        raise InputError("--stream requires a topic: --events kafka://HOST:PORT/TOPIC")
    job.claim(EVENTS_TABLE)
    position = f"{options.checkpoint or table_folder(job.options.out, '_checkpoint')}/ingest"
    _check_position(job, position, recover=options.recover)
    if job.spark.conf.get(SHUFFLE_PARTITIONS) in _NOT_CHOSEN:
        job.spark.conf.set(SHUFFLE_PARTITIONS, _BATCH_PARTITIONS)
    late_ms = _milliseconds(job.spark, options.late)
    batches = Batches(job.lake, position, job.options.window, late_ms)

    compacted = time.monotonic()

    def write(records: DataFrame, number: int) -> None:
        nonlocal compacted
        found = batches.write(records, number)
        if found.read:
            job.say(f"batch {number}: {found.read:,} events, {found.late:,} too late")
        if options.compact and time.monotonic() - compacted > _COMPACT_SECONDS:
            _compact(job)
            compacted = time.monotonic()

    writer = stream_lines(job.spark, job.source, options.most).writeStream.queryName("ingest")
    writer = writer.option("checkpointLocation", position).foreachBatch(write)
    if options.mode == ONCE:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{round(options.every * 1000)} milliseconds")
    with _until_signal() as ended:
        query = writer.start()
        try:
            _watch(query, ended, job)
        finally:
            query.stop()
    if options.compact:
        _compact(job)
    _report(job, batches)


def _compact(job: Job) -> None:
    for name in (EVENTS_TABLE, LATE_TABLE):
        job.lake.compact(name)


def _check_position(job: Job, position: str, *, recover: bool) -> None:
    """Check that the position and the tables belong together. Raises InputError."""
    folder = events_folder(job.options.out)
    note = FilePath(job.spark, stream_note(job.options.out))
    note.repair()
    # A first batch that did not end has offsets and no commit; the stream repeats it.
    there = any(FilePath(job.spark, f"{position}/{log}").has_files() for log in ("offsets", "commits"))
    if has_sink_log(job.spark, folder):
        raise InputError(
            f"the file sink of another Spark stream wrote {folder}; "
            f"run `ingest --events {folder}` with another --out and without --stream, "
            "and continue there with --stream and --recover"
        )
    if recover:
        FilePath(job.spark, position).delete()
    elif job.lake.exists(EVENTS_TABLE) and not there:
        raise InputError(
            f"{folder} has events, but {position} has no position of a stream: "
            "the table was written without --stream, or the checkpoint is lost, or --checkpoint is missing. "
            + _RECOVER
        )
    elif there and not note.exists():
        raise InputError(
            f"{position} has the position of a stream, but its table {folder} is gone. {_RECOVER}"
        )
    note.write_text(position + "\n")


def _milliseconds(spark: SparkSession, interval: str) -> int:
    """Convert a Spark interval, such as `1 hour`. Raises InputError."""
    escaped = interval.replace("\\", "").replace("'", "")
    try:
        query = f"SELECT unix_millis(timestamp_millis(0) + CAST('{escaped}' AS INTERVAL)) AS ms"
        found = spark.sql(query).collect()[0].ms
    except PySparkException:
        found = None
    if found is None or found < 0:
        raise InputError(f"--late {interval!r} is not an interval; expected, for example, `10 minutes`")
    return int(found)


def _watch(query: StreamingQuery, ended: threading.Event, job: Job) -> None:
    """Wait until the query ends or the user stops it. Raises PipelineError if it fails."""
    while query.isActive and not ended.wait(_POLL_SECONDS):
        pass
    failure = None if ended.is_set() else query.exception()
    if failure is None:
        return
    text = str(failure)
    if any(sign in text for sign in _LOST_RECORDS):
        raise PipelineError(
            f"the topic {job.source.topic} lacks records after the position of the last run: "
            "it was truncated, or created again, or its retention is shorter than the time between runs. "
            + _RECOVER
        )
    raise failure


def _report(job: Job, batches: Batches) -> None:
    sums = batches.sums
    job.say(f"{events_folder(job.options.out)}: {sums.read:,} events read")
    if sums.late:
        folder = table_folder(job.options.out, LATE_TABLE)
        job.say(
            f"{sums.late:,} of them came too late: {folder} has them. Jobs count them only with --with-late",
            style="bold",
        )
    job.report_quarantine(sums.bad, sums.contradicting)


@contextmanager
def _until_signal() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set while the block runs."""
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    if threading.current_thread() is not threading.main_thread():
        yield ended
        return
    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
