"""Failures of Spark: one sentence that names the file or the cause, and a log with the rest."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.errors import InputError, PipelineError
from pipeline.spark.failures import cause_of, explain, log_file
from tests.support.messages.usage_events import make_event, write_lines

RunJob = Callable[..., Result]
STAGE = """Job aborted due to stage failure: Task 1 in stage 3.0 failed 1 times, most recent failure:
org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file \
file:///lake/events/date=2026-01-01/part-0.parquet. SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:856)
Caused by: java.lang.RuntimeException: part-0.parquet is not a Parquet file.
\tat org.apache.parquet.hadoop.ParquetFileReader.readFooter(ParquetFileReader.java:771)
""".replace("\\\n", "")
PYTHON = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/opt/worker.py", line 1, in main
    process()
ValueError: cannot convert float NaN to integer

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
"""

WAITED = "java.io.EOFException\n\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)\n"


def lines_of(result: Result) -> list[str]:
    """What the command says about the failure."""
    found = result.output.partition("quota-pipeline: ")[2].strip().splitlines()
    assert found, result.output
    return found


def test_a_file_that_cannot_be_read_is_named() -> None:
    error = explain(PySparkException(STAGE))
    assert isinstance(error, InputError)
    assert "file:///lake/events/date=2026-01-01/part-0.parquet: part-0.parquet " in str(error)
    assert "\n" not in str(error)
    assert str(log_file()) in str(error)
    assert "cannotReadFilesError" in log_file().read_text()


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (STAGE, "part-0.parquet is not a Parquet file"),
        (PYTHON, "ValueError: cannot convert float NaN to integer"),
        ("java.lang.OutOfMemoryError: Java heap space\n\tat x.y", "Java heap space"),
        ("", "PySparkException"),
        ("x" * 1000, "x" * 300 + "..."),
    ],
)
def test_the_cause_is_one_line(text: str, cause: str) -> None:
    assert cause_of(PySparkException(text)) == cause


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("java.lang.OutOfMemoryError: Java heap space", "spark.driver.memory"),
        ("java.io.IOException: No space left on device", "spark.local.dir"),
        ('No FileSystem for scheme "s3a"', "spark.jars.packages"),
        ("Failed to find data source: kafka.", "--packages"),
    ],
)
def test_a_known_cause_has_advice(text: str, advice: str) -> None:
    error = explain(PySparkException(text))
    assert type(error) is PipelineError
    assert advice in str(error)


@pytest.mark.parametrize(
    "text",
    [
        f"Job aborted: {WAITED}\tat org.apache.spark.api.python.PythonWorkerFactory.create(x.scala:1)\n",
        f"Job aborted: Python worker exited unexpectedly (crashed)\n\tat x.y\nCaused by: {WAITED}\tat x.y\n",
    ],
)
def test_a_python_worker_that_was_killed(text: str) -> None:
    """As Spark says it before and after the worker has got its task."""
    error = explain(PySparkException(text))
    assert type(error) is PipelineError
    assert "Python worker" in str(error)
    assert "memory" in str(error)
    other = explain(PySparkException(f"{WAITED}\tat org.apache.hadoop.Reader.read(Reader.java:1)"))
    assert "Python worker" not in str(other)


def test_a_jvm_that_is_gone() -> None:
    assert type(explain(ConnectionRefusedError(111, "Connection refused"))) is PipelineError


def test_a_corrupt_parquet_file_fails_the_job(spark: SparkSession, run_job: RunJob, tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events.jsonl", [make_event()])
    assert run_job("ingest", "--events", events, "--out", tmp_path).exit_code == 0
    (file,) = (tmp_path / "events").rglob("*.parquet")
    whole = file.read_bytes()
    for checksum in file.parent.glob(".*.crc"):
        checksum.unlink()
    for broken in (whole[: len(whole) // 2], b"PAR1" + b"\xaa" * 400 + whole[404:]):
        file.write_bytes(broken)
        result = run_job("usage", "--events", tmp_path / "events", "--out", tmp_path / "out")
        assert (result.exit_code, type(result.exception)) == (2, SystemExit), result.output
        (sentence,) = lines_of(result)
        assert file.name in sentence
        found = re.search(r"the log is (\S+)", sentence)
        assert found
        assert "\tat org.apache." in Path(found[1]).read_text()
        assert not (tmp_path / "out/usage").exists()


def test_a_corrupt_archive_of_lines(run_job: RunJob, tmp_path: Path) -> None:
    file = tmp_path / "events/part.jsonl.gz"
    file.parent.mkdir()
    file.write_bytes(gzip.compress(b"x" * 10_000)[:20])
    result = run_job("usage", "--events", file.parent, "--out", tmp_path / "out")
    assert (result.exit_code, type(result.exception)) == (2, SystemExit), result.output
    (sentence,) = lines_of(result)
    assert file.name in sentence


@pytest.mark.parametrize(
    ("option", "value", "advice"),
    [
        ("--events", "nowhere://host/path", "spark.jars.packages"),
        ("--events", "hdfs://127.0.0.1:1/events", "check the address"),
    ],
)
def test_a_file_system_that_is_not_there(
    run_job: RunJob, tmp_path: Path, option: str, value: str, advice: str
) -> None:
    options = {"--events": tmp_path, "--out": tmp_path / "out", option: value}
    settings = ("--conf", "spark.hadoop.ipc.client.connect.max.retries=0")
    result = run_job("usage", *[each for pair in options.items() for each in pair], *settings)
    assert (result.exit_code, type(result.exception)) == (1, SystemExit), result.output
    (sentence,) = lines_of(result)
    assert advice.lower() in sentence.lower()
