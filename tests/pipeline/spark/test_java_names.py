"""PySpark looks up each name in Java once."""

from typing import Any

import pytest
from py4j import protocol  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.spark.java_names import RememberedNames, remember_names


@pytest.fixture
def sent(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that Java gets, from when nothing is remembered; without those that delete objects, which
    PySpark sends at any time.
    """
    gateway: Any = spark.sparkContext._gateway
    client = gateway._gateway_client
    assert isinstance(client.send_command, RememberedNames)
    commands: list[str] = []
    send = client.send_command._send

    def record(command: str, *others: Any, **options: Any) -> Any:
        if not command.startswith(protocol.MEMORY_COMMAND_NAME):
            commands.append(command)
        return send(command, *others, **options)

    monkeypatch.setattr(client, "send_command", RememberedNames(record))
    return commands


def test_a_column_takes_one_call(sent: list[str]) -> None:
    F.col("a")
    assert len(sent) > 1
    sent.clear()
    F.col("b")
    assert [command[0] for command in sent] == ["c"]


def test_values_of_static_fields_and_unknown_names_are_looked_up_again(
    spark: SparkSession, sent: list[str]
) -> None:
    remember_names(spark)
    jvm: Any = spark.sparkContext._jvm
    assert jvm.java.lang.Long.MAX_VALUE == (1 << 63) - 1
    first = len(sent)
    sent.clear()
    assert jvm.java.lang.Long.MAX_VALUE == (1 << 63) - 1
    assert (first, len(sent)) == (4, 1)
    for _ in range(2):
        sent.clear()
        with pytest.raises(Exception, match="nothing"):
            jvm.java.lang.Long.nothing  # noqa: B018
        assert len(sent) == 1
