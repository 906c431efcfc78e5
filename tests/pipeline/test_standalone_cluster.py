"""A job on a Spark cluster of a master, a worker and two executors gives the same result as a local one.

Each is compared with a file.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyspark
import pytest
from click.testing import Result
from pyspark.sql import SparkSession

from pipeline.cli import main as cli
from tests.pipeline.conftest import JVM_FLAGS
from tests.support.spark import local_files
from tests.support.tables import read_rows

GOLDEN: Final = Path(__file__).parent / "golden"
JOB: Final = ("replay", "--events", GOLDEN / "hour.jsonl", "--quotas", GOLDEN / "quotas.yaml", "--out")
REPLAYED: Final = GOLDEN / "replay.txt"
SPARK_SUBMIT: Final = Path(pyspark.__file__).parent / "bin" / "spark-submit"
HOST: Final = "127.0.0.1"
SETTINGS: Final = (
    f"spark.driver.host={HOST}",
    "spark.executor.cores=1",
    "spark.executor.memory=512m",
    "spark.sql.shuffle.partitions=2",
    # Several partitions of a few rows: what takes long is compiling.
    f"spark.driver.extraJavaOptions={JVM_FLAGS}",
    f"spark.executor.extraJavaOptions={JVM_FLAGS}",
    "spark.sql.codegen.wholeStage=false",
    "spark.sql.codegen.factoryMode=NO_CODEGEN",
    *(f"{name}={value}" for name, value in local_files.settings().items()),
    f"spark.executor.extraClassPath={local_files.settings()['spark.driver.extraClassPath']}",
)


@pytest.fixture
def master(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """spark://HOST:PORT of a master with a worker that has room for two executors.

    Both are in the Java process of the tests' session, which has Spark's classes; each executor has one of
    its own.
    """
    context: Any = spark.sparkContext
    java = context._jvm
    deploy, settings = java.org.apache.spark.deploy, java.org.apache.spark.SparkConf(False)
    nothing = java.scala.Option.empty()
    started: list[Any] = []
    try:
        started.append(deploy.master.Master.startRpcEnvAndEndpoint(HOST, 0, 0, settings)._1())
        urls = context._gateway.new_array(java.String, 1)
        urls[0] = started[0].address().toSparkURL()
        room = (2, 2048, urls, str(tmp_path / "worker"))
        worker = deploy.worker.Worker.startRpcEnvAndEndpoint(HOST, 0, 0, *room, nothing, settings, nothing)
        started.append(worker)
        yield urls[0]
    finally:
        for each in reversed(started):
            each.shutdown()
            each.awaitTermination()


def replayed(folder: Path) -> str:
    """The table of the job, a line for each row."""
    return "".join(f"{row}\n" for row in sorted(map(str, read_rows(folder / "replay"))))


def test_the_table_of_a_cluster(master: str, tmp_path: Path) -> None:
    """`spark-submit` chooses the master. The job reads, shuffles, computes in Python and writes on the
    executors.
    """
    command = [
        *(str(SPARK_SUBMIT), "--master", master, "--name", "hourly"),
        *[word for setting in SETTINGS for word in ("--conf", setting)],
        *(str(cli.__file__), *map(str, JOB), str(tmp_path)),
    ]
    # The pipeline is installed where the driver and the executors run.
    root = str(Path(cli.__file__).parents[2])
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": root}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    # spark-submit writes what the driver says to its standard output.
    assert f"Spark runs on {master}" in done.stdout
    assert replayed(tmp_path) == REPLAYED.read_text()


def test_the_table_of_one_machine(run_job: Callable[..., Result], tmp_path: Path) -> None:
    result = run_job(*JOB, tmp_path)
    assert result.exit_code == 0, result.output
    assert replayed(tmp_path) == REPLAYED.read_text()
