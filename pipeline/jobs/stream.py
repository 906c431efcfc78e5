"""Ingest as a stream: from a Kafka topic to Parquet, exactly once, resuming where the last run ended.

Spark's checkpoint holds the offsets read and the events seen; the table's own list of files holds the batches
written. An interrupted batch is written again and replaces its first attempt.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.errors import InputError, PipelineError
from pipeline.jobs.job import Job
from pipeline.session import LOCAL_SHUFFLE_PARTITIONS, SHUFFLE_PARTITIONS
from pipeline.sources import KAFKA, stream_lines
from pipeline.tables import EVENTS_TABLE, QUARANTINE_TABLE, events_folder, has_rows, is_streamed
from pipeline.transforms.events import bad, checked_lines, good, once, with_date, within

ONCE: Final = "once"
FOLLOW: Final = "follow"
MODES: Final = (ONCE, FOLLOW)
_STATE_PARTITIONS: Final = "8"
"""Each partition writes files in every batch. The first run fixes the number."""
_POLL_SECONDS: Final = 1.0
_QUALITY: Final = "quality"
_NOT_CHOSEN: Final = ("200", LOCAL_SHUFFLE_PARTITIONS)
"""Values that the user has not set: Spark's default, and ours."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """`mode`: ONCE ends at the end of the topic. `late`: a Spark interval. `every`: seconds."""

    mode: str
    late: str
    every: float
    checkpoint: str | None


def run_stream(job: Job, options: StreamOptions) -> None:
    """Run until the end of the topic (ONCE), or until SIGTERM or SIGINT."""
    if job.source.kind != KAFKA:
        raise InputError("--stream needs a topic: --events kafka://HOST:PORT/TOPIC")
    folder = events_folder(job.options.out)
    if has_rows(folder) and not is_streamed(folder):
        raise InputError(f"{folder} was written without --stream: omit --stream, or give another --out")
    if job.spark.conf.get(SHUFFLE_PARTITIONS) in _NOT_CHOSEN:
        job.spark.conf.set(SHUFFLE_PARTITIONS, _STATE_PARTITIONS)
    checked = checked_lines(stream_lines(job.spark, job.source))
    events = with_date(once(within(good(checked), job.options.window), options.late))
    counted = checked.observe(_QUALITY, F.count("reason").alias("bad"))
    with _until_signal() as ended:
        queries = [
            _start(events, EVENTS_TABLE, job, options, "date"),
            _start(bad(counted), QUARANTINE_TABLE, job, options),
        ]
        try:
            _watch(queries, ended, job)
        finally:
            for query in queries:
                query.stop()


def _start(table: DataFrame, name: str, job: Job, options: StreamOptions, *partitions: str) -> StreamingQuery:
    out = job.options.out.rstrip("/")
    checkpoint = options.checkpoint or f"{out}/_checkpoint"
    writer = (
        table.writeStream.queryName(name)
        .format("parquet")
        .option("path", f"{out}/{name}")
        .option("checkpointLocation", f"{checkpoint}/{name}")
        .partitionBy(*partitions)
    )
    if options.mode == ONCE:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{round(options.every * 1000)} milliseconds").start()


def _watch(queries: list[StreamingQuery], ended: threading.Event, job: Job) -> None:
    """Print each batch until the queries end or the user stops them."""
    seen = _Batches()
    while any(query.isActive for query in queries) and not ended.wait(_POLL_SECONDS):
        seen.show(queries, job)
    seen.show(queries, job)
    for query in queries:
        failure = query.exception()
        if failure is not None:
            raise PipelineError(f"the stream of {query.name} failed: {_cause(failure)}")
    job.say(
        f"{events_folder(job.options.out)}: {seen.read:,} events read, "
        f"{seen.late:,} dropped because they came too late"
    )
    if seen.bad:
        folder = f"{job.options.out}/{QUARANTINE_TABLE}"
        job.say(f"{seen.bad:,} of them are not events: {folder} has them with the reason", style="bold red")


class _Batches:
    """Sums over the batches of both queries."""

    def __init__(self) -> None:
        self.read = 0
        self.late = 0
        self.bad = 0
        self._seen: Final[dict[str, int]] = {}

    def show(self, queries: list[StreamingQuery], job: Job) -> None:
        """Print the batches since the last call."""
        for query in queries:
            name = str(query.name)
            for batch in query.recentProgress:
                if batch.batchId > self._seen.get(name, -1) and batch.numInputRows:
                    self._seen[name] = batch.batchId
                    self._add(name, batch, job)

    def _add(self, name: str, batch: StreamingQueryProgress, job: Job) -> None:
        if name == QUARANTINE_TABLE:
            self.bad += int(batch.observedMetrics[_QUALITY]["bad"])
            return
        late = sum(operator.numRowsDroppedByWatermark for operator in batch.stateOperators)
        self.read += batch.numInputRows
        self.late += late
        job.say(f"batch {batch.batchId}: {batch.numInputRows:,} events, {late:,} too late")


def _cause(failure: StreamingQueryException) -> str:
    lines = [line for line in str(failure).splitlines() if line.strip()]
    return lines[0] if lines else type(failure).__name__


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
