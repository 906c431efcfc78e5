"""The Spark session that a job runs in."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from pipeline.errors import PipelineError

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
_JAVA: Final = 17
_HERE: Final = Path(__file__).parent


def make_session(
    master: str = "local[*]", *, kafka: bool = False, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Make a session on `master`, in UTC. `settings` override the defaults. Raises PipelineError."""
    # Spark's workers would otherwise take the first python3 on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("quota-pipeline")
    defaults = _defaults(master, kafka=kafka)
    if SparkSession.getActiveSession() is not None:
        # The session's owner has chosen its shuffle partitions.
        defaults.pop(SHUFFLE_PARTITIONS, None)
    for key, value in {**defaults, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = _start(builder, master, attempts=_FETCH_ATTEMPTS if kafka else 1)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _start(builder: SparkSession.Builder, master: str, attempts: int) -> SparkSession:
    try:
        return builder.getOrCreate()
    except Exception as error:
        if attempts > 1 and isinstance(error, PySparkRuntimeError):
            return _start(builder, master, attempts - 1)
        raise PipelineError(
            f"Spark did not start on {master}: {_first_line(error)}; it needs Java {_JAVA} or newer and the "
            "master, and the first kafka:// source needs Maven Central. Spark's own messages are above"
        ) from error


def _defaults(master: str, *, kafka: bool) -> dict[str, str]:
    log = (_HERE / "log4j2.properties").as_uri()
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Keep the partitioning of Job.kept_events(), so that most tables need no further shuffle.
        "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log}",
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "2g",
            SHUFFLE_PARTITIONS: LOCAL_SHUFFLE_PARTITIONS,
        }
    if kafka:
        settings |= {
            "spark.jars.packages": KAFKA_PACKAGE,
            "spark.jars.ivySettings": str(_HERE / "ivysettings.xml"),
        }
    return settings


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


if __name__ == "__main__":
    make_session("local[1]", kafka=True).stop()
