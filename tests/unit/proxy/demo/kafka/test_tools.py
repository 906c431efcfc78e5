import subprocess
from pathlib import Path

import pytest

from proxy.demo.children import Children
from proxy.demo.kafka import jars
from proxy.demo.kafka.tools import KafkaToolFailed, KafkaTools, class_of
from tests.unit.proxy.demo.conftest import FakeJava


@pytest.fixture
def children() -> Children:
    return Children()


@pytest.fixture
def tools(fake_java: FakeJava, children: Children, tmp_path: Path) -> KafkaTools:
    return KafkaTools(jars.ensure(), children, tmp_path)


@pytest.mark.parametrize(
    ("tool", "version", "expected"),
    [
        ("kafka-topics", "4.3.1", "org.apache.kafka.tools.TopicCommand"),
        ("kafka-topics", "3.9.1", "org.apache.kafka.tools.TopicCommand"),
        ("kafka-acls", "4.3.1", "org.apache.kafka.tools.AclCommand"),
        ("kafka-acls", "3.9.1", "kafka.admin.AclCommand"),
        ("kafka.tools.StorageTool", "4.3.1", "kafka.tools.StorageTool"),
    ],
)
def test_the_class_behind_a_script(tool: str, version: str, expected: str) -> None:
    assert class_of(tool, version) == expected


def test_a_tool_reads_its_input_and_gives_its_output(tools: KafkaTools) -> None:
    done = tools.run("kafka-console-consumer", "--topic", "t", input="one\ntwo\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\ntwo\n", "")
    assert done.args[-3:] == ["org.apache.kafka.tools.consumer.ConsoleConsumer", "--topic", "t"]


def test_a_tool_that_fails_says_why(tools: KafkaTools) -> None:
    with pytest.raises(KafkaToolFailed, match=r"kafka-producer-perf-test --x .* status 5:\ntools say why"):
        tools.run("kafka-producer-perf-test", "--x")
    done = tools.run("kafka-producer-perf-test", check=False)
    assert (done.returncode, done.stderr) == (5, "tools say why\n")


def test_a_tool_that_takes_too_long_is_killed(tools: KafkaTools, children: Children) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        tools.run("a.Sleeper", timeout=0.2)
    assert all(process.poll() is not None for process in children._processes)


def test_a_started_tool_has_pipes(tools: KafkaTools) -> None:
    process = tools.start("kafka-console-producer")
    output, _ = process.communicate("one\n", timeout=30)
    assert output == "one\n"


def test_errors_of_tools_go_to_files(tools: KafkaTools, tmp_path: Path) -> None:
    for _ in range(2):
        tools.run("kafka-producer-perf-test", check=False)
    kept = sorted(file.name for file in tmp_path.glob("*.err"))
    assert kept == ["1-kafka-producer-perf-test.err", "2-kafka-producer-perf-test.err"]
