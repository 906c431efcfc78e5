"""The start of Spark's Python workers before a task needs them."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession


def start_workers(spark: SparkSession) -> threading.Thread:
    """Start the process that forks Python workers, while this process plans the job's query: it imports its
    libraries for half a second or more. If it does not start, the first task of the job says so. Return the
    thread that waits for it.
    """
    thread = threading.Thread(target=_run_task, args=(spark,), daemon=True)
    thread.start()
    return thread


def _run_task(spark: SparkSession) -> None:
    # A short job may have stopped the session meanwhile.
    with suppress(Exception):
        spark.range(0, 1, 1, 1).mapInArrow(_same, "id long").collect()


def _same(batches: Iterable[Any]) -> Iterator[Any]:
    yield from batches
