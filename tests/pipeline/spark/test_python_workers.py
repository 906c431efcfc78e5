"""The start of Spark's Python workers, on Spark."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.spark.python_workers import start_workers
from tests.support.waiting import wait_until


def test_a_task_runs_in_python(spark: SparkSession) -> None:
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup())
    start_workers(spark)

    def has_run() -> bool:
        jobs = [tracker.getJobInfo(job) for job in set(tracker.getJobIdsForGroup()) - before]
        return any(job is not None and job.status == "SUCCEEDED" for job in jobs)

    wait_until(has_run, "a task in a Python worker")


def test_a_session_that_ends_meanwhile(capfd: pytest.CaptureFixture[str]) -> None:
    class Ended:
        def range(self, *_: object) -> None:
            raise RuntimeError("SparkContext was shut down")

    ended: Any = Ended()
    start_workers(ended).join()
    assert capfd.readouterr() == ("", "")
