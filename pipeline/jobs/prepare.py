"""Writes the archive of Java's classes, in one run of jobs on an event."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pyspark.sql.pandas.types import to_arrow_schema
from rich.console import Console

from pipeline.errors import PipelineError
from pipeline.inputs.prices import Prices
from pipeline.jobs.batch import write_chargeback, write_throttle, write_usage
from pipeline.jobs.job import Job, Options
from pipeline.schema import COUNTS, EVENT
from pipeline.spark import class_archive
from pipeline.spark.session import INTERPRETED, SHUFFLE_PARTITIONS, JavaRows, end_java, make_session, stop
from pipeline.transforms.hours import HOUR
from pipeline.window import Window

_EVENT: Final = {
    **{field.name: "x" for field in EVENT.fields},
    **{"v": 1, "broker": 0, "interval_start_ms": 1_767_182_400_000, "interval_ms": 1, "partition": 0},
    **dict.fromkeys(COUNTS, 1),
}

_FEW_PARTITIONS: Final = "4"
"""More of them need no other classes."""


def write_archive(console: Console) -> Path:
    """Run the jobs whose classes the archive gets; return it. It is written when Java ends."""
    try:
        class_archive.FOLDER.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=class_archive.FOLDER, prefix=".") as folder:
            unfinished = Path(folder, "classes")
            _run_jobs(Path(folder), class_archive.writing(unfinished), console)
            end_java()
            return class_archive.keep(unfinished)
    except OSError as error:
        raise PipelineError(f"cannot write to {class_archive.FOLDER}: {error.strerror}") from error


def _run_jobs(folder: Path, flags: str, console: Console) -> None:
    schema: Any = to_arrow_schema(EVENT)
    pq.write_table(pa.Table.from_pylist([_EVENT], schema), folder / "events.parquet")
    options = Options(
        events=str(folder / "events.parquet"),
        out=str(folder / "out"),
        window=Window(),
        settings=(("spark.driver.extraJavaOptions", flags), (SHUFFLE_PARTITIONS, _FEW_PARTITIONS)),
    )
    # The jobs share it, which saves the start of a session and of its Python workers for each.
    spark = make_session(settings=dict(options.settings), java_rows=JavaRows.SUMS)
    try:
        with Job(options, console) as job:
            write_usage(job, HOUR)
        for key, value in INTERPRETED.items():
            spark.conf.set(key, value)
        with Job(options, console) as job:
            write_throttle(job)
        with Job(options, console) as job:
            write_chargeback(job, Prices(currency="EUR"))
    finally:
        stop(spark)
