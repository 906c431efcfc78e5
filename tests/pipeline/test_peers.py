"""The tables of usage, throttling and cost, compared with those of DuckDB and Polars, which share no code."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
import yaml
from click.testing import Result
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.pipeline.__main__ import PEERS, PEERS_JOBS, PRICES
from bench.pipeline.generate import events
from pipeline.schema import CHARGEBACK, THROTTLE, USAGE, names
from tests.support.messages.usage_events import START_MS, make_event
from tests.support.tables import read_rows

RunJob = Callable[..., Result]
TABLES = {"usage": USAGE, "throttle": THROTTLE, "chargeback": CHARGEBACK}


@pytest.fixture(scope="module", params=["parquet", "json"])
def source(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Events of two clusters and two hours, with duplicates, throttling and events without a topic."""
    folder = tmp_path_factory.mktemp(request.param)
    made = events(spark, 2000, 2, tenants=20, interval_ms=60_000)
    waits = made.withColumns({"throttle_ms": F.coalesce(made.partition % 7, made.broker), "quota": made.api})
    both = made.unionAll(waits.withColumn("cluster", made.user))
    both.write.option("ignoreNullFields", "false").mode("append").format(request.param).save(str(folder))
    assert both.distinct().count() < both.count()
    return folder


def rows_of(job: str, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Comparable rows, in an order of their own: floating-point sums depend on the order of the events."""
    columns = names(TABLES[job])
    found = []
    for row in rows:
        values = [row[name] for name in columns]
        found.append(tuple(float(f"{each:.9g}") if isinstance(each, float) else each for each in values))
    return sorted(found, key=repr)


@pytest.fixture(scope="module", params=PEERS_JOBS)
def table(
    request: pytest.FixtureRequest,
    run_job: RunJob,
    source: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, list[dict[str, Any]]]:
    """A job, and the rows of its table."""
    job, out = request.param, tmp_path_factory.mktemp("out")
    prices = out / "prices.yaml"
    prices.write_text(PRICES)
    options = ["--prices", prices] if job == "chargeback" else []
    result = run_job(job, "--events", source, "--out", out, *options)
    assert result.exit_code == 0, result.output
    return job, [row.asDict() for row in read_rows(out / job)]


@pytest.mark.parametrize("tool", PEERS)
def test_a_table_is_that_of_another_program(
    source: Path, table: tuple[str, list[dict[str, Any]]], tool: str
) -> None:
    pytest.importorskip(tool, reason=f"{tool} is not installed: pip install --group bench")
    job, ours = table
    peer = importlib.import_module(f"bench.pipeline.in_{tool}")
    theirs = peer.rows(job, str(source), yaml.safe_load(PRICES))
    assert len(ours) > 10
    assert rows_of(job, ours) == rows_of(job, theirs)
    if tool == "duckdb" and source.name.startswith("parquet"):
        with peer.connect("1GB", str(source)) as connection:
            found = peer.checked_table(connection, job, str(source), source, yaml.safe_load(PRICES))
            checked = connection.sql("FROM result").to_arrow_table().to_pylist()
        assert (found["bad"], found["contradicted"]) == (0, 0)
        assert rows_of(job, ours) == rows_of(job, checked)


def test_duckdb_checks_events(tmp_path: Path) -> None:
    """The first of two events counts; what does not count is in a table of its own."""
    peer = importlib.import_module("bench.pipeline.in_duckdb")
    events = [make_event(), make_event(bytes_in=7), make_event(at=10_000), make_event(at=10_000)]
    pq.write_table(pa.Table.from_pylist([*events, make_event(bytes_in=-1)]), tmp_path / "events.parquet")
    with peer.connect("1GB", str(tmp_path)) as connection:
        found = peer.checked_table(connection, "usage", str(tmp_path), tmp_path, {})
        (row,) = connection.sql("FROM result").to_arrow_table().to_pylist()
    assert (row["bytes_in"], row["requests"]) == (2000, 20)
    assert found == {"read": 5, "bad": 1, "start": START_MS, "end": START_MS + 20_000, "contradicted": 1}
    quarantine = pq.read_table(tmp_path / "quarantine.parquet").to_pylist()
    assert sorted((each["bytes_in"], each["reason"]) for each in quarantine) == [
        (-1, "invalid"),
        (7, "contradicts"),
    ]
