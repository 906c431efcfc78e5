"""Jobs on a full disk: one sentence, the tables of the run before, and nothing else."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import Result
from pyspark.sql import SparkSession

from bench.pipeline.__main__ import PRICES
from tests.support.messages.usage_events import make_event, write_lines
from tests.support.tables import read_rows

LARGEST: Final = 1000
"""Bytes that Java can write to a file."""


@contextmanager
def full_disk(spark: SparkSession) -> Iterator[None]:
    """Java cannot write larger files. Its error then is EFBIG, which it handles as ENOSPC."""
    context: Any = spark.sparkContext
    pid = context._jvm.java.lang.ProcessHandle.current().pid()
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (LARGEST, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("job", "table"), [("ingest", "events"), ("usage", "usage"), ("chargeback", "chargeback")]
)
def test_a_full_disk_leaves_the_tables_of_the_run_before(
    spark: SparkSession, run_job: Callable[..., Result], tmp_path: Path, job: str, table: str
) -> None:
    lines, out, prices = tmp_path / "lines", tmp_path / "out", tmp_path / "prices.yaml"
    prices.write_text(PRICES)
    command = (job, "--events", lines, "--out", out, *(["--prices", prices] if job == "chargeback" else []))
    write_lines(lines / "first.jsonl", [make_event()])
    assert run_job(*command).exit_code == 0
    before = read_rows(out / table)
    users = [f"user-{number}" for number in range(200)]
    write_lines(lines / "second.jsonl", [make_event(user=user) for user in users])
    with full_disk(spark):
        result = run_job(*command)
    assert (result.exit_code, type(result.exception)) == (1, SystemExit), result.output
    sentence = result.output.splitlines()[-1]
    assert sentence.startswith("quota-pipeline: ")
    assert "free space" in sentence
    assert read_rows(out / table) == before
    assert not [path for path in out.rglob("*") if path.name.startswith((".table", "_temporary"))]
    assert run_job(*command).exit_code == 0
    assert {row.user for row in read_rows(out / table)} == {"alice", *users}
