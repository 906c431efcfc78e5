"""The Spark session: its defaults on this machine and on a cluster, and the error if it does not start."""

import os
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from pipeline.errors import PipelineError
from pipeline.spark import class_archive, session
from pipeline.spark.session import (
    KAFKA_PACKAGE,
    LOCAL,
    LOCAL_SHUFFLE_PARTITIONS,
    SHUFFLE_PARTITIONS,
    SUBMITTED,
    JavaRows,
    make_session,
    stop,
)
from pipeline.storage.formats import PACKAGES


class Builder:
    """SparkSession and its builder: keeps the settings, and fails so many times."""

    def __init__(self, error: Exception | None = None, failures: int = 0) -> None:
        self.builder = self
        self.settings: dict[str, str] = {}
        self.sparkContext = self._gateway = self._gateway_client = self
        self.starts = 0
        self._error = error
        self._failures = failures

    def getActiveSession(self) -> None:
        return None

    def master(self, url: str) -> Self:
        return self.config("spark.master", url)

    def appName(self, name: str) -> Self:
        return self.config("spark.app.name", name)

    def config(self, key: str, value: str) -> Self:
        self.settings[key] = value
        return self

    def getOrCreate(self) -> Self:
        self.starts += 1
        if self._error is not None and self.starts <= self._failures:
            raise self._error
        return self

    def send_command(self, command: str) -> str:
        raise NotImplementedError

    def setLogLevel(self, level: str) -> None:
        self.settings["log level"] = level


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have sessions made by a builder; PYSPARK_PYTHON is not set."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)

    def replace(builder: Builder) -> Builder:
        monkeypatch.setattr(session, "SparkSession", builder)
        return builder

    return replace


def test_times_are_utc_and_workers_run_this_python(use: Any) -> None:
    builder = use(Builder())
    make_session("spark://host:7077")
    assert builder.settings["spark.master"] == "spark://host:7077"
    assert builder.settings["spark.sql.session.timeZone"] == "UTC"
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert builder.settings["log level"] == "ERROR"


def test_pandas_is_imported_while_java_starts(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    builder, imported = Builder(), threading.Event()
    use(builder)
    monkeypatch.setattr(session, "import_module", lambda name: imported.set() if name == "pandas" else None)
    started = builder.getOrCreate

    def start() -> Builder:
        assert imported.wait(60)
        return started()

    monkeypatch.setattr(builder, "getOrCreate", start)
    make_session()
    assert builder.starts == 1


def test_the_users_python_is_kept(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use(Builder())
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    make_session("spark://host:7077")
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python"


def test_memory_and_shuffle_partitions_of_a_cluster_are_its_own(use: Any) -> None:
    local, cluster = use(Builder()), Builder()
    make_session()
    assert local.settings[SHUFFLE_PARTITIONS] == LOCAL_SHUFFLE_PARTITIONS
    use(cluster)
    make_session("spark://host:7077")
    assert not {SHUFFLE_PARTITIONS, "spark.driver.memory", "spark.driver.host"} & cluster.settings.keys()
    assert "spark.jars.packages" not in cluster.settings


def test_settings_override_the_defaults(use: Any) -> None:
    builder = use(Builder())
    make_session(kafka=True, settings={"spark.driver.memory": "7g", "spark.own": "1"})
    assert (builder.settings["spark.driver.memory"], builder.settings["spark.own"]) == ("7g", "1")
    assert builder.settings["spark.jars.packages"] == KAFKA_PACKAGE


def test_times_stay_in_utc_and_decimals_whole(use: Any) -> None:
    """Otherwise dates of tables would be those of a zone, and amounts would be null."""
    builder = use(Builder())
    own = {
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    }
    make_session(settings=own)
    assert [builder.settings[key] for key in own] == ["UTC", "true"]


def test_packages_and_java_options_of_the_user_are_added(use: Any) -> None:
    builder = use(Builder())
    own = {"spark.jars.packages": "org.example:lake:1", "spark.driver.extraJavaOptions": "-Db=2"}
    make_session(kafka=True, settings=own)
    assert builder.settings["spark.jars.packages"] == f"{KAFKA_PACKAGE},org.example:lake:1"
    options = builder.settings["spark.driver.extraJavaOptions"].split()
    assert (options[0].partition("=")[0], options[-1]) == ("-Dlog4j2.configurationFile", "-Db=2")
    builder = use(Builder())
    make_session(settings=own)
    assert builder.settings["spark.jars.packages"] == "org.example:lake:1"


def java_options(builder: Builder) -> list[str]:
    return builder.settings["spark.driver.extraJavaOptions"].split()


def test_java_has_one_collector(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not start with two."""
    builder = use(Builder())
    make_session()
    assert "-XX:+UseParallelGC" in java_options(builder)
    make_session(settings={"spark.driver.extraJavaOptions": "-Xss4m -XX:+UseZGC"})
    assert [each for each in java_options(builder) if each.endswith("GC")] == ["-XX:+UseZGC"]
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:+UseG1GC")
    make_session()
    assert [each for each in java_options(builder) if each.endswith("GC")] == []
    assert any(each.startswith("-XX:Tier4") for each in java_options(builder))


@pytest.mark.parametrize("java_rows", JavaRows)
def test_java_does_not_optimize_code_for_sums(use: Any, java_rows: JavaRows) -> None:
    builder = use(Builder())
    make_session(java_rows=java_rows)
    few = java_rows is not JavaRows.EVENTS
    assert ("-XX:TieredStopAtLevel=1" in java_options(builder)) == few
    assert any(each.startswith("-XX:Tier4") for each in java_options(builder)) != few


@pytest.mark.parametrize("java_rows", JavaRows)
def test_spark_compiles_no_query_for_few_rows(use: Any, java_rows: JavaRows) -> None:
    builder = use(Builder())
    make_session(java_rows=java_rows)
    interpreted = "spark.sql.codegen.wholeStage" in builder.settings
    assert interpreted == (java_rows is JavaRows.TENANTS)
    make_session(java_rows=java_rows, settings={"spark.sql.codegen.wholeStage": "true"})
    assert builder.settings["spark.sql.codegen.wholeStage"] == "true"


def test_java_reads_its_classes_from_the_archive(
    use: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(class_archive, "FOLDER", tmp_path)
    builder = use(Builder())
    make_session()
    assert not any("Archive" in each for each in java_options(builder))
    (tmp_path / "classes-1.jsa").write_bytes(b"x")
    make_session()
    assert f"-XX:SharedArchiveFile={tmp_path}/classes-1.jsa" in java_options(builder)


def test_spark_submit_chooses_the_master_and_the_settings(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = use(Builder())
    make_session(None)
    assert builder.settings["spark.master"] == LOCAL
    monkeypatch.setenv(SUBMITTED, "12345")
    builder = use(Builder())
    make_session(None, kafka=True, settings={"spark.own": "1"})
    assert builder.settings["spark.own"] == "1"
    assert builder.settings["spark.sql.session.timeZone"] == "UTC"
    chosen = {
        "spark.master",
        "spark.app.name",
        "spark.driver.host",
        "spark.driver.memory",
        SHUFFLE_PARTITIONS,
    }
    assert not chosen & builder.settings.keys()
    builder = use(Builder())
    make_session("spark://host:7077")
    assert builder.settings["spark.master"] == "spark://host:7077"


def test_fetching_the_source_of_kafka_is_tried_again(use: Any) -> None:
    error = PySparkRuntimeError("network")
    builder = use(Builder(error, failures=2))
    make_session(kafka=True)
    assert builder.starts == 3
    for builder, kafka, starts in ((Builder(error, 9), True, 3), (Builder(error, 9), False, 1)):
        use(builder)
        with pytest.raises(PipelineError) as failed:
            make_session("spark://host:7077", kafka=kafka)
        assert builder.starts == starts
        assert failed.value.__cause__ is error


def test_packages_that_are_there_are_not_fetched_again(
    use: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(session, "_JARS", tmp_path)
    builder = use(Builder())
    monkeypatch.setattr(session, "stop", lambda spark: None)
    fetched = [
        "org.apache.spark_spark-sql-kafka-0-10_2.13-4.0.0.jar",
        "io.delta_delta-spark_2.13-4.0.0.jar",
        "org.apache.iceberg_iceberg-spark-runtime-4.0_2.13-1.10.0.jar",
    ]
    for number, name in enumerate(fetched, 1):
        session.main()
        assert builder.starts == number
        (tmp_path / name).touch()
    session.main()
    assert builder.starts == len(fetched)


def test_the_jars_of_packages_have_the_names_that_spark_gives_them(spark: SparkSession) -> None:
    """Spark has fetched them for the session of the tests."""
    assert session.fetched([session.KAFKA_PACKAGE, *PACKAGES.values()])


def test_signals_end_the_process_while_java_starts(use: Any) -> None:
    """Afterwards they have the handlers of before, unless they are ignored."""
    during: list[Any] = []

    class Signaled(Builder):
        def getOrCreate(self) -> Self:
            during.extend(map(signal.getsignal, (signal.SIGINT, signal.SIGTERM)))
            # As PySpark does.
            signal.signal(signal.SIGINT, lambda number, frame: None)
            return super().getOrCreate()

    use(Signaled())
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        make_session()
        assert during == [signal.SIG_DFL, signal.SIG_IGN]
        assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_session_stops_without_the_server_of_accumulators() -> None:
    """PySpark stops the server, too, and waits for it."""
    server = SimpleNamespace(shutdown=threading.Event().wait)
    context = SimpleNamespace(_accumulatorServer=server)
    left: list[Any] = []
    spark: Any = SimpleNamespace(sparkContext=context)
    spark.stop = lambda: left.append(context._accumulatorServer)
    stop(spark)
    assert left == [None]


def test_a_master_that_cannot_be_reached_is_named(use: Any) -> None:
    use(Builder(ValueError("\n first line\nsecond line"), failures=9))
    with pytest.raises(PipelineError) as failed:
        make_session("spark://host:7077", kafka=True)
    assert "spark://host:7077" in str(failed.value)
    assert "first line" in str(failed.value)
    assert "second line" not in str(failed.value)


def test_a_session_that_runs_keeps_its_shuffle_partitions(spark: SparkSession) -> None:
    assert spark.conf.get(SHUFFLE_PARTITIONS) == "1"
    assert make_session("local[2]", kafka=True).conf.get(SHUFFLE_PARTITIONS) == "1"


def test_tests_run_with_the_few_settings_of_hadoop_that_they_need(spark: SparkSession) -> None:
    """Spark sends them to each task; Hadoop has 1,100 by default."""
    context: Any = spark.sparkContext
    assert context._jsc.hadoopConfiguration().size() < 300
