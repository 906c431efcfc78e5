"""The Spark session that a job runs in."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from pipeline.errors import PipelineError
from pipeline.spark import class_archive
from pipeline.spark.failures import cause_of, log_file
from pipeline.spark.java_names import remember_names
from pipeline.storage.formats import PACKAGES

KAFKA_PACKAGE: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
"""Spark's Kafka source for any PySpark 4.0 (their patch releases do not appear together). The first job that
reads a topic fetches it from Maven Central.
"""
SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"
LOCAL_SHUFFLE_PARTITIONS: Final = "64"
"""On one machine. Spark's default of 200 is for clusters; a small job would spend most of its time on them.
"""
_FETCH_ATTEMPTS: Final = 3
"""Ivy, which fetches the source, gives up at the first network error."""
_JARS: Final = Path.home() / ".ivy2.5.2" / "jars"
"""Where Spark 4 keeps the jars of packages (`spark.jars.ivy`)."""
_JAVA: Final = 17
"""The oldest Java that Spark 4 runs on."""
_HERE: Final = Path(__file__).parent
LOCAL: Final = "local[*]"
SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""The environment variable that `spark-submit` sets for the Python process that it starts."""
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_COLLECTOR: Final = "-XX:+UseParallelGC"
"""Java's G1 costs more CPU time, for short pauses, which no job needs."""
_COMPILER: Final = (
    "-XX:Tier4InvocationThreshold=25000 -XX:Tier4MinInvocationThreshold=3000 -XX:Tier4CompileThreshold=75000 "
    "-XX:-DontCompileHugeMethods"
)
"""Five times Java's defaults. Rows reach them at once, and most of the code that plans queries never does, so
that Java does not optimize it for longer than it runs. By default, Java interprets methods of more than 8,000
bytes of code, such as the one that Spark generates for the check of a line.
"""
_NO_OPTIMIZER: Final = "-XX:TieredStopAtLevel=1 -XX:-DontCompileHugeMethods"
"""Java compiles all code, but does not optimize any. That takes the least time if it processes few rows."""
_ANY_COLLECTOR: Final = re.compile(r"-XX:\+Use\w+GC\b")
_JAVA_VARIABLES: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""The environment variables with options of every JVM."""
_ADDED: Final = {
    "spark.jars.packages": ",",
    _JAVA_OPTIONS: " ",
    "spark.sql.extensions": ",",
}
"""Settings that are lists, with their separators."""
_HUGE_METHOD: Final = "spark.sql.codegen.hugeMethodLimit"
_ANY_METHOD: Final = "65535"
"""All methods that Java can load. With _COMPILER, it compiles them."""
_NEEDED: Final = {
    # The dates of tables are days in UTC.
    "spark.sql.session.timeZone": "UTC",
    # Spark would otherwise compute products of decimals, such as amounts, to null.
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
}
"""Settings without which tables would be wrong. The user's own ones do not override them."""
_SQL: Final = {
    **_NEEDED,
    # From the many conditions of an event, Spark would otherwise derive others, and plan for minutes.
    "spark.sql.constraintPropagation.enabled": "false",
    # Keep the partitioning of Job.kept_events(), so that most tables need no further shuffle.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "false",
    # Java interprets methods of more than 8,000 bytes of code. Spark then makes smaller ones.
    _HUGE_METHOD: "8000",
    # Rows that are in order, as those of deduplicate(), need no hash table.
    "spark.sql.execution.replaceHashWithSortAgg": "true",
    # Each column would be made with a look at Python's stack, for errors that name a line of this program.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""Settings that jobs rely on."""


class JavaRows(Enum):
    """What Java processes in a job."""

    EVENTS = auto()
    SUMS = auto()
    """The sums of Python's workers, with many rows for each tenant."""
    TENANTS = auto()
    """Sums with few rows for each tenant."""


INTERPRETED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings with which Spark writes no Java code for a query. To compile it takes longer than to process some
10,000 rows.
"""


def make_session(
    master: str | None = LOCAL,
    *,
    kafka: bool = False,
    packages: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    java_rows: JavaRows = JavaRows.EVENTS,
) -> SparkSession:
    """Make a session in UTC. `settings` override the defaults, except _NEEDED, or add to those of _ADDED.
    Raises PipelineError.

    `packages`: the Maven coordinates of what the formats of tables need. `master`: None for that of
    `spark-submit`, which has then started this process, or else LOCAL. `java_rows` matters on this machine.
    """
    # Spark's workers would otherwise take the first python3 on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    submitted = SUBMITTED in os.environ
    if master is None and not submitted:
        master = LOCAL
    builder = SparkSession.builder if submitted else SparkSession.builder.appName("quota-pipeline")
    if master is not None:
        builder = builder.master(master)
    wanted = [KAFKA_PACKAGE, *packages] if kafka else list(packages)
    defaults = _SQL if submitted else _defaults(master or LOCAL, wanted, settings or {}, java_rows)
    if SparkSession.getActiveSession() is not None:
        # The session's owner has chosen these.
        owned = {SHUFFLE_PARTITIONS, *INTERPRETED}
        defaults = {key: value for key, value in defaults.items() if key not in owned}
    for key, value in {**merged(defaults, settings or {}), **_NEEDED}.items():
        builder = builder.config(key, value)
    # PySpark imports it with a job's first function in Python. Here it costs no time: Java starts meanwhile.
    threading.Thread(target=import_module, args=("pandas",), daemon=True).start()
    spark = _start(builder, master or "the master of spark-submit", attempts=_FETCH_ATTEMPTS if wanted else 1)
    remember_names(spark)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def merged(defaults: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the defaults with the user's settings, which add to lists and override all else."""
    both = {**defaults, **settings}
    for key, separator in _ADDED.items():
        if key in defaults and key in settings:
            both[key] = f"{defaults[key]}{separator}{settings[key]}"
    return both


def _start(builder: SparkSession.Builder, master: str, attempts: int) -> SparkSession:
    try:
        with _ended_by_signals():
            return builder.getOrCreate()
    except Exception as error:
        if attempts > 1 and isinstance(error, PySparkRuntimeError):
            return _start(builder, master, attempts - 1)
        raise PipelineError(
            f"Spark did not start on {master}: {cause_of(error)}; check that Java {_JAVA} or newer is "
            "installed and the master is reachable. The first run with a kafka:// source, or with a "
            "format other than Parquet, also needs Maven Central. See the messages of Spark above"
        ) from error


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Have signals end this process at once while Java starts: Java then ends, too. It would stay if PySpark,
    interrupted by an exception, removed the folder in which the two find each other. Undo PySpark's handler
    of SIGINT, which calls Java, also in the middle of another call.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number, handler in handlers.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def stop(spark: SparkSession) -> None:
    """Stop a session. PySpark would wait until its server of accumulators looks whether it should end, which
    it does once or twice a second. No job that could send it one runs any more.
    """
    context: Any = spark.sparkContext
    server, context._accumulatorServer = context._accumulatorServer, None
    threading.Thread(target=server.shutdown, daemon=True).start()
    spark.stop()


def _defaults(
    master: str, packages: Sequence[str], own: Mapping[str, str], java_rows: JavaRows
) -> dict[str, str]:
    """Return the settings of a session that this process starts itself."""
    log = (_HERE / "log4j2.properties").as_uri()
    settings = {
        **_SQL,
        "spark.ui.enabled": "false",
        # For each query, and each change of its plan, Spark writes a text for its pages, which nobody sees.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.maxToStringFields": "0",
        "spark.ui.showConsoleProgress": "false",
        _JAVA_OPTIONS: f"-Dlog4j2.configurationFile={log} -Dquota.pipeline.log={log_file()}",
    }
    if master.startswith("local"):
        settings[_JAVA_OPTIONS] += f" {_java_flags(own, java_rows)}"
        settings |= {
            _HUGE_METHOD: _ANY_METHOD,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "2g",
            # On a cluster, the workers' machines may have this package from --py-files only, and not yet.
            "spark.python.daemon.module": "pipeline.spark.python_daemon",
            SHUFFLE_PARTITIONS: LOCAL_SHUFFLE_PARTITIONS,
            **(INTERPRETED if java_rows is JavaRows.TENANTS else {}),
        }
    if packages:
        settings |= {
            "spark.jars.packages": ",".join(packages),
            "spark.jars.ivySettings": str(_HERE / "ivysettings.xml"),
        }
    return settings


def _java_flags(own: Mapping[str, str], java_rows: JavaRows) -> str:
    """Return flags for a JVM that runs a job. It does not start with two collectors, so the user's stays."""
    chosen = [own.get(_JAVA_OPTIONS, ""), *[os.environ.get(name, "") for name in _JAVA_VARIABLES]]
    found = [
        *class_archive.flags(" ".join(chosen)),
        _COMPILER if java_rows is JavaRows.EVENTS else _NO_OPTIMIZER,
    ]
    return " ".join(found if any(map(_ANY_COLLECTOR.search, chosen)) else [_COLLECTOR, *found])


def end_java(seconds: float = 300.0) -> None:
    """End the Java process of all sessions, and wait for its end. Raises PipelineError if it does not end."""
    gateway: Any = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    # It ends with its standard input.
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(seconds)
    except subprocess.TimeoutExpired as error:
        raise PipelineError(f"Java did not end within {seconds:g} seconds") from error
    SparkContext._gateway = SparkContext._jvm = None


def fetched(packages: Sequence[str]) -> bool:
    """Whether the jars of packages are where Spark keeps them. It fetches each with all that it needs."""
    names = [f"{'_'.join(package.split(':')[:2])}-{package.rpartition(':')[2]}.jar" for package in packages]
    return all((_JARS / name).exists() for name in names)


def main() -> None:
    """Fetch the packages of all jobs, unless they are there: Spark fetches them when a session starts."""
    if not fetched([KAFKA_PACKAGE, *PACKAGES.values()]):
        stop(make_session("local[1]", kafka=True, packages=list(PACKAGES.values())))


if __name__ == "__main__":
    main()
