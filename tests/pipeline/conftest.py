"""One Spark session for all tests; jobs run through the command, in this process."""

import gc
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import DataFrame, SparkSession

from pipeline.cli.main import main
from pipeline.schema import EVENT
from pipeline.spark.session import make_session
from pipeline.storage.formats import PACKAGES
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.spark import local_files

JVM_FLAGS: Final = (
    # As for Kafka's tools: a compiler and a collector that cost little. G1's barriers and threads do not pay.
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData "
    # Java collects the whole heap each time that the loaded classes outgrow a limit, which begins at 21 MB.
    "-XX:MetaspaceSize=256m "
    # Spark's jars are those that everybody runs; to verify their classes takes seconds.
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""For a JVM with Spark that lives for seconds or minutes."""
QUICK: Final = {
    "spark.driver.memory": "1g",
    # What all tests run does not fit into the 48 MB of code that this compiler keeps by default. Most objects
    # die young: with a large part of the heap for new ones, the collector copies fewer of them.
    "spark.driver.extraJavaOptions": f"{JVM_FLAGS} -XX:ReservedCodeCacheSize=256m -Xmn400m",
    "spark.sql.shuffle.partitions": "1",
    # Compiling a query takes longer than running it on a handful of rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
SHARED: Final = {"spark", "kafka"}
"""The fixtures that take long to start: the tests that take one run in one process, which is not that of the
unit tests, as these would wait behind them.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that take what the tests share.

    Ignore unclosed sockets: py4j leaves them to the garbage collector.
    """
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            if isinstance(item, pytest.Function) and not SHARED.isdisjoint(item.fixturenames):
                item.add_marker(pytest.mark.shared)


def start_spark(settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session with two threads and one shuffle partition, which is fast for small tables, or return
    the session that runs.

    All sessions are in one Java process, which takes packages only at its start.
    """
    quick = {**QUICK, **local_files.settings(), **(settings or {})}
    return make_session("local[2]", kafka=True, packages=list(PACKAGES.values()), settings=quick)


def stop_spark() -> None:
    """Stop the session if one runs."""
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


@pytest.fixture(scope="session")
def java() -> Iterator[None]:
    """Stop the last session after all tests."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        stop_spark()
        gc.collect()


@pytest.fixture(scope="module")
def spark(java: None) -> SparkSession:
    """The session of all tests, unless a module has one of its own."""
    return start_spark()


@pytest.fixture
def frame(spark: SparkSession) -> Callable[..., DataFrame]:
    """Make a table of events from dicts."""

    def make(*events: dict[str, Any]) -> DataFrame:
        return spark.createDataFrame([tuple(event[name] for name in EVENT.names) for event in events], EVENT)

    return make


@pytest.fixture(scope="module")
def run_job(spark: SparkSession) -> Callable[..., Result]:
    """Run `quota-pipeline` with these arguments in the tests' session."""

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    return run


@pytest.fixture(scope="session")
def kafka() -> Iterator[EmbeddedKafka]:
    """One broker of the newest Kafka."""
    with EmbeddedKafka() as kafka:
        yield kafka


@pytest.fixture
def mounted(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A URL of a file system that is not the local one."""
    name = "fs.viewfs.mounttable.lake.link./data"
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set(name, tmp_path.as_uri())
    settings.set("fs.viewfs.impl.disable.cache", "true")
    yield "viewfs://lake/data"
    settings.unset(name)
