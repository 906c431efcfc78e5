"""A job on a Spark cluster of a master and two workers gives the same result as a local one."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyspark
import pytest

from proxy.demo.children import Children
from proxy.demo.ports import free_ports
from tests.support.waiting import wait_until

GOLDEN: Final = Path(__file__).parent / "golden"
SPARK_CLASS: Final = Path(pyspark.__file__).parent / "bin" / "spark-class"
HOST: Final = "127.0.0.1"
JVM_FLAGS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""For six processes that live for seconds."""
SETTINGS: Final = (
    f"spark.driver.host={HOST}",
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
    """spark://HOST:PORT of a master with two workers of one core each."""
    monkeypatch.setenv("SPARK_DAEMON_JAVA_OPTS", JVM_FLAGS)
    children = Children()
    port, *pages = free_ports(4)
    url = f"spark://{HOST}:{port}"
    log = tmp_path / "cluster.log"
    with log.open("wb") as output:

        def start(name: str, page: int, *arguments: str) -> None:
            command = [str(SPARK_CLASS), f"org.apache.spark.deploy.{name}", "--host", HOST]
            children.spawn(
                [*command, "--webui-port", str(page), *arguments], stdout=output, stderr=subprocess.STDOUT
            )

        def workers() -> bool:
            return log.read_text().count("Registering worker") == 2

        try:
            start("master.Master", pages[0], "--port", str(port))
            for page in pages[1:]:
                folder = str(tmp_path / f"worker-{page}")
                start("worker.Worker", page, "--cores", "1", "--memory", "1g", "--work-dir", folder, url)
            wait_until(workers, "two workers", 120)
            yield url
        finally:
            children.kill_all()


def test_the_report_is_the_same(master: str, tmp_path: Path) -> None:
    """The report has every table, one of which is computed in Python on the workers."""
    command = [
        *(sys.executable, "-m", "pipeline.cli", "report", "--master", master),
        *("--events", str(GOLDEN / "hour.jsonl"), "--out", str(tmp_path / "out")),
        *("--prices", str(GOLDEN / "prices.yaml"), "--quotas", str(GOLDEN / "quotas.yaml")),
        *[word for setting in SETTINGS for word in ("--conf", setting)],
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/report.html").read_text() == (GOLDEN / "report.html").read_text()
