"""EmbeddedKafka serves, restarts, reports why it failed, and never outlives the process that started it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from proxy.demo import prepare
from proxy.demo.embedded_kafka import BrokerFailed, EmbeddedKafka
from proxy.demo.kafka import jars
from proxy.demo.kafka.broker_probe import live_brokers
from proxy.demo.kafka.broker_properties import INTERNAL
from proxy.demo.kafka.tools import CLASSES, KafkaToolFailed, class_of
from proxy.demo.ports import free_ports
from proxy.demo.run_folder import remove_abandoned
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka

# Prints the brokers' process ids and the folder, then lives until it is told or killed.
_OWNER = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background job
from proxy.demo.embedded_kafka import EmbeddedKafka
with EmbeddedKafka() as kafka:
    tool = kafka.start_tool("kafka-console-producer", "--bootstrap-server", kafka.bootstrap, "--topic", "t")
    print(kafka.pid(1), tool.pid, kafka.folder, flush=True)
    sys.stdin.read()
"""


def _make_topic(kafka: EmbeddedKafka, topic: str, *more: str) -> None:
    kafka.run_tool("kafka-topics", "--bootstrap-server", kafka.bootstrap, "--create", "--topic", topic, *more)


def _produce(kafka: EmbeddedKafka, topic: str, *records: str) -> None:
    lines = "".join(f"{record}\n" for record in records)
    kafka.run_tool(
        "kafka-console-producer", "--bootstrap-server", kafka.bootstrap, "--topic", topic, input=lines
    )


def _consume(kafka: EmbeddedKafka, topic: str, count: int, *more: str) -> list[str]:
    arguments = ("--bootstrap-server", kafka.bootstrap, "--topic", topic, "--max-messages", str(count), *more)
    return kafka.run_tool("kafka-console-consumer", *arguments).stdout.splitlines()


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[str]]:
    """A Python process that runs a Kafka."""
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def _owned(owner: subprocess.Popen[str]) -> tuple[list[int], Path]:
    assert owner.stdout is not None
    *pids, folder = owner.stdout.readline().split()
    assert all(_runs(int(pid)) for pid in pids)
    return [int(pid) for pid in pids], Path(folder)


def test_records_go_in_and_come_out(kafka: EmbeddedKafka) -> None:
    """Each tool runs in a JVM of its own."""
    run_tool = partial(EmbeddedKafka.run_tool, kafka)
    to_topic = ("--bootstrap-server", kafka.bootstrap, "--topic", "embedded-records")
    run_tool("kafka-topics", *to_topic, "--create")
    run_tool("kafka-console-producer", *to_topic, input="one\ntwo\n")
    read = run_tool("kafka-console-consumer", *to_topic, "--from-beginning", "--max-messages", "2")
    assert read.stdout.splitlines() == ["one", "two"]


def test_the_new_group_protocols_work(kafka: EmbeddedKafka) -> None:
    """KIP-848 and KIP-932 need features of the cluster, and internal topics that fit one broker."""
    _make_topic(kafka, "embedded-groups")
    _produce(kafka, "embedded-groups", "one", "two")
    kip_848 = ("--from-beginning", "--command-property", "group.protocol=consumer")
    assert _consume(kafka, "embedded-groups", 2, *kip_848) == ["one", "two"]

    to_group = ("--bootstrap-server", kafka.bootstrap, "--entity-type", "groups", "--entity-name", "sharers")
    kafka.run_tool("kafka-configs", *to_group, "--alter", "--add-config", "share.auto.offset.reset=earliest")
    to_topic = ("--bootstrap-server", kafka.bootstrap, "--topic", "embedded-groups", "--group", "sharers")
    shared = kafka.run_tool("kafka-console-share-consumer", *to_topic, "--max-messages", "2").stdout
    assert sorted(shared.splitlines()) == ["one", "two"]


def test_a_broker_can_be_stopped_and_killed_and_comes_back(kafka_cluster: EmbeddedKafka) -> None:
    kafka = kafka_cluster
    _make_topic(kafka, "embedded-restarts", "--replication-factor", "3", "--config", "min.insync.replicas=2")
    _produce(kafka, "embedded-restarts", "before")
    ports = [kafka.port(node_id) for node_id in kafka.node_ids]

    kafka.stop(2)
    wait_until(lambda: live_brokers(kafka.port(1), 5.0) == {1, 3}, "the others see 2 go")
    _produce(kafka, "embedded-restarts", "while 2 was down")
    kafka.start(2)
    assert live_brokers(kafka.port(2), 5.0) == {1, 2, 3}

    old_pid = kafka.pid(1)
    kafka.kill(1)
    assert not _runs(old_pid)
    kafka.start(1)
    assert [kafka.port(node_id) for node_id in kafka.node_ids] == ports
    assert _consume(kafka, "embedded-restarts", 2, "--from-beginning") == ["before", "while 2 was down"]


def test_kafka_3_serves_as_well(kafka_391: EmbeddedKafka) -> None:
    _make_topic(kafka_391, "embedded-records")
    _produce(kafka_391, "embedded-records", "one")
    assert _consume(kafka_391, "embedded-records", 1, "--from-beginning") == ["one"]
    versions = kafka_391.run_tool("kafka-broker-api-versions", "--bootstrap-server", kafka_391.bootstrap)
    assert "Produce(0)" in versions.stdout


def test_a_broker_that_cannot_start_says_why() -> None:
    kafka = EmbeddedKafka()
    message = r"(?s)broker 1 ended with status 1; from its log .*in use"
    with (
        socket.create_server(("127.0.0.1", kafka.port(1))),
        pytest.raises(BrokerFailed, match=message),
        kafka,
    ):
        pass
    assert kafka.log(1).exists(), "the logs of a failure are kept"
    shutil.rmtree(kafka.folder)


def test_a_tool_that_fails_says_why(kafka: EmbeddedKafka) -> None:
    absent = ("--bootstrap-server", kafka.bootstrap, "--describe", "--topic", "absent")
    with pytest.raises(KafkaToolFailed, match="Topic 'absent' does not exist"):
        EmbeddedKafka.run_tool(kafka, "kafka-topics", *absent)
    assert EmbeddedKafka.run_tool(kafka, "kafka-topics", *absent, check=False).returncode == 1


def test_a_tool_that_takes_too_long_is_killed(kafka: EmbeddedKafka) -> None:
    _make_topic(kafka, "embedded-silent")
    with pytest.raises(subprocess.TimeoutExpired):
        EmbeddedKafka.run_tool(
            kafka,
            "kafka-console-consumer",
            *("--bootstrap-server", kafka.bootstrap, "--topic", "embedded-silent"),
            timeout=2.0,
        )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_nothing_outlives_a_killed_owner(owner: subprocess.Popen[str]) -> None:
    pids, folder = _owned(owner)
    os.kill(owner.pid, signal.SIGKILL)
    wait_until(lambda: not any(_runs(pid) for pid in pids), "the broker and the tool end")
    remove_abandoned()
    assert not folder.exists()


def test_nothing_outlives_ctrl_c(owner: subprocess.Popen[str]) -> None:
    pids, folder = _owned(owner)
    os.kill(owner.pid, signal.SIGINT)
    owner.wait(30)
    assert not any(_runs(pid) for pid in pids)
    assert not folder.exists()


@pytest.mark.parametrize("version", ["4.3.1", "3.9.1"])
def test_every_tool_is_in_the_jars(version: str) -> None:
    entries: set[str] = set()
    for jar in jars.ensure(version).folder.glob("kafka*.jar"):
        with zipfile.ZipFile(jar) as content:
            entries.update(content.namelist())
    missing = {
        tool for tool in CLASSES if class_of(tool, version).replace(".", "/") + ".class" not in entries
    }
    newer = {"kafka-console-share-consumer", "kafka-groups", "kafka-share-consumer-perf-test"}
    newer |= {"kafka-share-groups", "kafka-streams-groups"}
    assert missing == (newer if version.startswith("3.") else set())


def test_a_trial_run_makes_an_archive_that_brokers_start_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same broker has settings: a start takes long."""
    distribution = jars.ensure()
    copy = tmp_path / "kafka-quota-proxy" / distribution.folder.name
    copy.mkdir(parents=True)
    for jar in distribution.folder.glob("*.jar"):
        (copy / jar.name).symlink_to(jar)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    prepare.main([])
    archive = jars.ensure().class_archive
    assert archive.parent == copy
    client, advertised = free_ports(2)
    with EmbeddedKafka(
        ports={1: client},
        advertised={1: {"PLAINTEXT": f"localhost:{advertised}"}},
        properties={"message.max.bytes": "5000", "log.retention.hours": "7"},
        broker_properties={1: {"log.retention.hours": "8"}},
    ) as kafka:
        maps = Path(f"/proc/{kafka.pid(1)}/maps").read_text()
        assert str(archive) in maps
        _check_settings(kafka, client, advertised)
        folder = kafka.folder
    assert not folder.exists()


def _check_settings(kafka: EmbeddedKafka, client: int, advertised: int) -> None:
    assert kafka.port(1) == client
    assert kafka.bootstrap == f"127.0.0.1:{client}"
    log = kafka.log(1).read_text()
    addresses = f"PLAINTEXT://localhost:{advertised}, INTERNAL://127.0.0.1:{kafka.port(1, INTERNAL)}"
    assert f"\tadvertised.listeners = [{addresses}]\n" in log
    assert "\tmessage.max.bytes = 5000\n" in log
    assert "\tlog.retention.hours = 8\n" in log
