"""Kafka's tools in a JVM that stays say the same as each in a JVM of its own."""

import subprocess
from collections.abc import Iterator

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.tool_server import ToolServer
from tests.support.kafka.topics import make_topic

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def server(kafka: EmbeddedKafka) -> Iterator[ToolServer]:
    server = ToolServer(kafka.version)
    yield server
    server.close()


def test_status_and_output_are_those_of_a_process(kafka: EmbeddedKafka, server: ToolServer) -> None:
    """A tool that ends well, one that prints with Scala's library, one that fails, and one that throws."""
    make_topic(kafka, "tool-server")
    to_kafka = ("--bootstrap-server", kafka.bootstrap)
    for tool, *arguments in (
        ("kafka-topics", *to_kafka, "--describe", "--topic", "tool-server"),
        ("kafka-configs", *to_kafka, "--describe", "--entity-type", "topics", "--entity-name", "tool-server"),
        ("kafka-topics", *to_kafka, "--describe", "--topic", "absent"),
        ("kafka-storage", "info", "-c", "/no/such/file"),
        (
            "kafka-configs",
            *to_kafka,
            "--describe",
            "--entity-type",
            "users",
            "--entity-name",
            "müller \U0001f600",
        ),
    ):
        own = EmbeddedKafka.run_tool(kafka, tool, *arguments, check=False)
        served = server.run(tool, arguments, "", 60)
        assert served is not None
        assert (served.returncode, served.stdout) == (own.returncode, own.stdout)


def test_a_tool_begins_with_fresh_static_fields(kafka: EmbeddedKafka, server: ToolServer) -> None:
    """The console consumer counts its messages in one."""
    make_topic(kafka, "tool-server-fresh")
    to_topic = ("--bootstrap-server", kafka.bootstrap, "--topic", "tool-server-fresh")
    server.run("kafka-console-producer", to_topic, "one\ntwo\n", 60)
    for _ in range(2):
        read = server.run(
            "kafka-console-consumer", (*to_topic, "--from-beginning", "--max-messages", "2"), "", 60
        )
        assert read is not None
        assert read.stdout.splitlines() == ["one", "two"]


def test_a_tool_that_takes_too_long_ends_with_its_jvm(kafka: EmbeddedKafka, server: ToolServer) -> None:
    make_topic(kafka, "tool-server-silent")
    to_kafka = ("--bootstrap-server", kafka.bootstrap)
    with pytest.raises(subprocess.TimeoutExpired):
        server.run("kafka-console-consumer", (*to_kafka, "--topic", "tool-server-silent"), "", 5)
    listed = server.run("kafka-topics", (*to_kafka, "--list"), "", 60)
    assert listed is not None
    assert "tool-server-silent" in listed.stdout.splitlines()
