"""A job on a Spark cluster of a master, a worker and two executors gives the same result as a local one.

Each is compared with a file, so that the cluster runs beside the tests that share a session.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pyspark
import pytest
from click.testing import Result

from pipeline.cli import main as cli
from proxy.demo.children import Children
from proxy.demo.ports import free_ports
from tests.pipeline.conftest import JVM_FLAGS
from tests.support.tables import read_rows
from tests.support.waiting import wait_until

GOLDEN: Final = Path(__file__).parent / "golden"
JOB: Final = ("replay", "--events", GOLDEN / "hour.jsonl", "--quotas", GOLDEN / "quotas.yaml", "--out")
REPLAYED: Final = GOLDEN / "replay.txt"
SPARK_BIN: Final = Path(pyspark.__file__).parent / "bin"
SPARK_CLASS: Final = SPARK_BIN / "spark-class"
SPARK_SUBMIT: Final = SPARK_BIN / "spark-submit"
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
)


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """spark://HOST:PORT of a master with a worker that has room for two executors."""
    monkeypatch.setenv("SPARK_DAEMON_JAVA_OPTS", JVM_FLAGS)
    children = Children()
    port, *pages = free_ports(3)
    url = f"spark://{HOST}:{port}"
    log = tmp_path / "cluster.log"
    with log.open("wb") as output:

        def start(name: str, page: int, *arguments: str) -> None:
            command = [str(SPARK_CLASS), f"org.apache.spark.deploy.{name}", "--host", HOST]
            children.spawn(
                [*command, "--webui-port", str(page), *arguments], stdout=output, stderr=subprocess.STDOUT
            )

        def has_worker() -> bool:
            return "Registering worker" in log.read_text()

        try:
            start("master.Master", pages[0], "--port", str(port))
            folder = str(tmp_path / "worker")
            start("worker.Worker", pages[1], "--cores", "2", "--memory", "2g", "--work-dir", folder, url)
            wait_until(has_worker, "a worker", 120)
            yield url
        finally:
            children.kill_all()


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
