"""`quota-proxy quotas` with a plain broker, where kafka-configs shows the same quotas, and with the proxy."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from proxy.cli.main import main
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.topics import make_topic
from tests.support.process.proxy_process import COMMAND, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka

Run = Callable[..., Result]
NO_RESOURCES = "  topics: {}\n  brokers: {}\n"
"""The end of a proxy's export."""
MANY = 1100
"""More than go into one request."""


def commands(bootstrap: str) -> Run:
    def run(command: str, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["quotas", command, "--bootstrap", bootstrap, *arguments])

    return run


@pytest.fixture
def quotas(kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Run]:
    """Run a command with the broker, and remove the quotas that are left at the end."""

    run = commands(kafka.bootstrap)
    yield run
    nobody = tmp_path / "nobody.yaml"
    nobody.write_text("quotas: {clients: []}\n")
    done = run("import", str(nobody), "--prune", "--yes")
    assert done.exit_code == 0, done.stderr
    wait_until(lambda: run("diff", str(nobody)).exit_code == 0, "the broker's forgetting the quotas")


def clients(quotas: Run, *options: str) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = json.loads(quotas("list", "--format", "json", *options).stdout)["quotas"][
        "clients"
    ]
    return shown


def counts(done: Result) -> list[int]:
    """The numbers that a command tells on standard error."""
    return [int(number) for number in re.findall(r"\d+", done.stderr)]


def configs(kafka: EmbeddedKafka, *arguments: str) -> str:
    return kafka.run_tool("kafka-configs", "--bootstrap-server", kafka.bootstrap, *arguments).stdout


def test_kafka_configs_sees_what_was_set(kafka: EmbeddedKafka, quotas: Run) -> None:
    names = ("--user", "CN=a b,O=ü", "--client-id-default")
    done = quotas("set", *names, "producer_byte_rate=1048576", "request_percentage=12.5")
    assert done.exit_code == 0, done.stderr
    of_ips = [str(COMMAND), "quotas", "set", "--bootstrap", kafka.bootstrap, "--ip-default"]
    assert subprocess.run([*of_ips, "connection_creation_rate=100"]).returncode == 0
    entity = (
        "--entity-type",
        "users",
        "--entity-name",
        "CN=a b,O=ü",
        "--entity-type",
        "clients",
        "--entity-default",
    )
    wait_until(lambda: len(clients(quotas)) == 2, "both quotas at the broker")
    shown = configs(kafka, "--describe", *entity)
    assert "producer_byte_rate=1048576.0" in shown
    assert "request_percentage=12.5" in shown
    assert "connection_creation_rate=100.0" in configs(
        kafka, "--describe", "--entity-type", "ips", "--entity-default"
    )


def test_it_sees_what_kafka_configs_set(kafka: EmbeddedKafka, quotas: Run) -> None:
    pair = (
        "--entity-type",
        "users",
        "--entity-name",
        "42",
        "--entity-type",
        "clients",
        "--entity-name",
        "yes",
    )
    configs(
        kafka, "--alter", "--add-config", "consumer_byte_rate=2097152,controller_mutation_rate=0.5", *pair
    )
    configs(
        kafka, "--alter", "--add-config", "producer_byte_rate=7", "--entity-type", "users", "--entity-default"
    )
    wait_until(lambda: len(clients(quotas)) == 2, "both quotas at the broker")
    assert clients(quotas, "--user", "42") == [
        {
            "entity": {"user": "42", "client-id": "yes"},
            "consumer_byte_rate": 2097152,
            "controller_mutation_rate": 0.5,
        }
    ]
    assert clients(quotas, "--user-default") == [{"entity": {"user": "<default>"}, "producer_byte_rate": 7}]
    assert quotas("get", "--user", "42").exit_code == 1
    assert quotas("delete", "--user", "42", "--client-id", "yes", "consumer_byte_rate").exit_code == 0
    wait_until(
        lambda: "consumer_byte_rate" not in clients(quotas, "--user", "42")[0], "the removal at the broker"
    )
    assert "consumer_byte_rate" not in configs(kafka, "--describe", *pair)


def test_a_round_trip_through_a_file(quotas: Run, tmp_path: Path) -> None:
    file = tmp_path / "quotas.yaml"
    wanted = [
        {
            "entity": {"user": f"tenant-{number}"},
            "consumer_byte_rate": 1 + number,
            "producer_byte_rate": 10**6,
        }
        for number in range(MANY)
    ]
    file.write_text(yaml.safe_dump({"quotas": {"clients": wanted}}))
    done = quotas("import", str(file))
    assert counts(done) == [MANY, 0, 0]
    wait_until(lambda: quotas("diff", str(file)).exit_code == 0, "all quotas at the broker")
    exported = tmp_path / "exported.yaml"
    assert quotas("export", "--out", str(exported)).exit_code == 0
    assert yaml.safe_load(exported.read_text())["quotas"]["clients"] == sorted(
        wanted, key=lambda entry: str(entry["entity"])
    )

    quotas("set", "--user", "tenant-7", "producer_byte_rate=1", "request_percentage=50")
    quotas("set", "--client-id", "stray", "producer_byte_rate=1")
    quotas("delete", "--user", "tenant-8")
    expected = [
        "~ user tenant-7: producer_byte_rate 1 -> 1000000",
        "- user tenant-7: request_percentage 50",
        "+ user tenant-8: consumer_byte_rate 9",
        "+ user tenant-8: producer_byte_rate 1000000",
        "- client-id stray: producer_byte_rate 1",
    ]
    wait_until(
        lambda: quotas("diff", str(exported)).stdout.splitlines() == expected, "the changes at the broker"
    )
    assert quotas("import", str(exported), "--prune", "--yes").exit_code == 0
    wait_until(lambda: quotas("diff", str(exported)).exit_code == 0, "the old state at the broker")


def test_what_the_broker_rejects_is_told_and_the_rest_is_done(quotas: Run, tmp_path: Path) -> None:
    file = tmp_path / "quotas.yaml"
    file.write_text(
        "quotas:\n  clients:\n"
        "    - {entity: {user: a}, producer_byte_rate: -1}\n"
        "    - {entity: {user: b}, speed: 1}\n"
        "    - {entity: {ip: no.such.host.invalid}, connection_creation_rate: 1}\n"
        "    - {entity: {user: c, ip: 10.0.0.1}, connection_creation_rate: 1}\n"
        "    - {entity: {user: d}, producer_byte_rate: 1}\n"
    )
    dry = quotas("import", str(file), "--dry-run")
    done = quotas("import", str(file))
    for result, verb in ((dry, "would be altered"), (done, "altered")):
        assert result.exit_code == 1
        errors = result.stderr.splitlines()
        assert errors[-1] == f"1 entities {verb}, 0 unchanged, 4 rejected"
        rejected = {line.split(": not altered: ")[0] for line in errors[:-1]}
        assert rejected == {
            "quota-proxy: user a",
            "quota-proxy: user b",
            "quota-proxy: ip no.such.host.invalid",
            "quota-proxy: user c, ip 10.0.0.1",
        }
    wait_until(
        lambda: [entry["entity"] for entry in clients(quotas)] == [{"user": "d"}], "the only good entry"
    )


def test_a_plain_broker_rejects_temporary_quotas_whole(quotas: Run) -> None:
    done = quotas("set", "--user", "a", "producer_byte_rate=1", "--for", "2h")
    assert done.exit_code == 1
    assert "user a: " in done.stderr
    assert clients(quotas) == []


def test_log(kafka: EmbeddedKafka, quotas: Run) -> None:
    missing = quotas("log", "--topic", "no-such-log")
    assert missing.exit_code == 1
    assert "no-such-log" in missing.stderr
    assert (
        "no-such-log"
        not in kafka.run_tool("kafka-topics", "--bootstrap-server", kafka.bootstrap, "--list").stdout
    )

    make_topic(kafka, "quota-log", partitions=2)
    assert quotas("log", "--topic", "quota-log").stdout.splitlines()[1:] == []
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    changes: list[tuple[dict[str, str | None], object]] = [
        ({"user": "alice"}, 1048576),
        ({"user": None}, 5.5),
        ({"user": "alice"}, None),
        ({"topic": "orders"}, "9"),
        ({"broker": "1"}, "8"),
    ]
    for at, (entity, value) in enumerate(changes):
        kind, name = ("client-quota", "producer_byte_rate") if "user" in entity else ("config", "a.config")
        key = {"kind": kind, "entity": entity, "name": name}
        how = {
            "v": 1,
            "value": value,
            "by": "admin",
            "client_id": "c",
            "from": "10.0.0.7",
            "at_ms": 1000 * at,
        }
        producer.produce("quota-log", json.dumps(how), json.dumps(key), partition=at % 2)
    producer.produce("quota-log", "junk", "junk", partition=0)
    assert producer.flush(30) == 0
    shown = quotas("log", "--topic", "quota-log")
    assert shown.exit_code == 0, shown.stderr
    assert [line.split()[0:1] + line.split()[4:] for line in shown.stdout.splitlines()[1:]] == [
        ["1970-01-01T00:00:00Z", "user", "alice", "producer_byte_rate", "1048576"],
        ["1970-01-01T00:00:01Z", "user", "<default>", "producer_byte_rate", "5.5"],
        ["1970-01-01T00:00:02Z", "user", "alice", "producer_byte_rate", "removed"],
        ["1970-01-01T00:00:03Z", "topic", "orders", "a.config", "9"],
        ["1970-01-01T00:00:04Z", "broker", "1", "a.config", "8"],
    ]
    assert counts(shown) == [1]
    for option, name, value in (("--of-topic", "orders", "9"), ("--of-broker", "01", "8")):
        [_, only] = quotas("log", "--topic", "quota-log", option, name).stdout.splitlines()
        assert only.split()[-1] == value
    [_] = quotas("log", "--topic", "quota-log", "--of-topic-default").stdout.splitlines()
    of_default = quotas("log", "--topic", "quota-log", "--user-default", "--format", "json").stdout
    assert [json.loads(line)["value"] for line in of_default.splitlines()] == [5.5]


def test_kafka_3_9(kafka_391: EmbeddedKafka, run_proxy: ProxyRunner, tmp_path: Path) -> None:
    """Quotas of Kafka 3.9 are exported, and imported into a proxy before it."""
    native = commands(kafka_391.bootstrap)
    proxy = commands(
        run_proxy(kafka_391.bootstrap, settings={"quotas": {"store": {"topic": "cli-391"}}}).bootstrap
    )
    file = tmp_path / "native.yaml"
    names = ("--user", "old-alice", "--client-id", "old-billing")
    assert native("set", *names, "producer_byte_rate=1000", "controller_mutation_rate=0.5").exit_code == 0
    try:
        wait_until(lambda: len(clients(native)) == 1, "the quota at the broker")
        assert native("export", "--out", str(file)).exit_code == 0
        assert native("diff", str(file)).exit_code == 0
    finally:
        assert native("delete", *names).exit_code == 0
    assert counts(proxy("import", str(file))) == [1, 0, 0]
    assert proxy("export").stdout == file.read_text() + NO_RESOURCES
    assert clients(proxy) == yaml.safe_load(file.read_text())["quotas"]["clients"]
    assert proxy("get", *names).exit_code == 0
    assert len(proxy("log", *names, "--topic", "cli-391").stdout.splitlines()) == 3
    assert proxy("delete", *names, "producer_byte_rate").exit_code == 0
    assert clients(proxy)[0].keys() == {"entity", "controller_mutation_rate"}


def test_native_quotas_taken_over_by_the_proxy(
    kafka: EmbeddedKafka, quotas: Run, run_proxy: ProxyRunner, tmp_path: Path
) -> None:
    quotas(
        "set", "--user", "alice", "--client-id-default", "producer_byte_rate=1000", "request_percentage=12.5"
    )
    quotas("set", "--ip", "10.0.0.1", "connection_creation_rate=100")
    wait_until(lambda: len(clients(quotas)) == 2, "both quotas at the broker")
    file = tmp_path / "native.yaml"
    assert quotas("export", "--out", str(file)).exit_code == 0

    topic = "taken-over"
    proxy = commands(run_proxy(kafka.bootstrap, settings={"quotas": {"store": {"topic": topic}}}).bootstrap)
    done = proxy("import", str(file))
    assert counts(done) == [2, 0, 0]
    assert proxy("diff", str(file)).exit_code == 0
    assert proxy("export").stdout == file.read_text() + NO_RESOURCES

    alice = ("--user", "alice", "--client-id-default")
    assert proxy("set", *alice, "producer_byte_rate=2000", "--for", "2h").exit_code == 0
    assert proxy("set", "--user", "guest", "producer_byte_rate=5", "--for", "2h").exit_code == 0
    assert len(clients(proxy)) == 3
    # What is temporary is in force, and in no file.
    assert proxy("get", *alice).stdout.split()[-1] == "12.5"
    assert proxy("diff", str(file)).exit_code == 0
    assert proxy("export").stdout == file.read_text() + NO_RESOURCES
    assert proxy("delete", *alice, "--temporary").exit_code == 0
    assert proxy("diff", str(file)).exit_code == 0
    assert "no_such" in proxy("set", *alice, "no_such=1").stderr

    lines = proxy("log", *alice, "--topic", topic, "--format", "json").stdout.splitlines()
    log = [(entry["name"], entry["value"], entry["temporary"]) for entry in map(json.loads, lines)]
    assert sorted(log[:2]) == [("producer_byte_rate", 1000.0, False), ("request_percentage", 12.5, False)]
    assert log[2:] == [("producer_byte_rate", 2000.0, True), ("producer_byte_rate", None, True)]
    assert {(json.loads(line)["by"], json.loads(line)["address"]) for line in lines} == {
        ("ANONYMOUS", "127.0.0.1")
    }


TOPICS = ("1.0", "yes", "null")
"""Names that YAML reads as something else than text."""
USERS = ('CN=a b,O="x",C=ü', "null", "it's: #1")


@pytest.mark.parametrize("workers", [1, 2])
def test_every_kind_of_quota_through_a_file(
    kafka: EmbeddedKafka, run_proxy: ProxyRunner, tmp_path: Path, workers: int
) -> None:
    """The proxy's file has some, tools set others: export, import and diff agree; prune leaves the file's.

    A change reaches the second worker a moment later, and a command asks either.
    """
    topics = [f"{name}-cli{workers}" if name != "1.0" else f"{workers}.0" for name in TOPICS]
    for topic in topics:
        make_topic(kafka, topic)
    of_file = {
        "store": {"topic": f"cli-kinds-{workers}"},
        "topics": {topics[0]: {"producer.byte.rate": 1000}, "<default>": {"consumer.byte.rate": 5000}},
        "brokers": {"<default>": {"total.bytes.in.per.sec.threshold": 10**9}},
    }
    clients_of_file = [{"entity": {"user": "of-file"}, "producer_byte_rate": 111}]
    started = run_proxy(kafka.bootstrap, clients_of_file, settings={"workers": workers, "quotas": of_file})
    proxy = commands(started.bootstrap)

    def holds(command: str, *arguments: str) -> Result:
        done = proxy(command, *arguments)
        assert done.exit_code == 0, done.stderr
        return done

    for user in USERS:
        holds("set", "--user", user, "--client-id-default", "producer_byte_rate=1048576")
    for topic in topics:
        holds("set", "--topic", topic, "producer.byte.rate=7", "producer.byte.rate.action=reject")
    holds("set", "--topic", topics[0], "consumer.byte.rate=9", "--for", "2h")
    holds("set", "--topic-default", "topic.producer.byte.rate=70000")
    holds("set", "--broker", "1", "total.bytes.in.per.sec.threshold=500000000")
    holds("delete", "--user", "of-file")
    of_topic = [
        ["consumer.byte.rate", "9", "topic", f"{topics[0]},"],
        ["producer.byte.rate", "7", "topic", f"{topics[0]},"],
        ["producer.byte.rate.action", "reject", "topic", f"{topics[0]},"],
        ["topic.producer.byte.rate", "70000", "topic", "<default>,"],
    ]

    def got() -> list[list[str]]:
        lines = holds("get", "--topic", topics[0]).stdout.splitlines()[1:]
        return [line.split()[2:6] for line in lines]

    wait_until(lambda: got() == of_topic, "the quotas of the topic")

    exported = tmp_path / "exported.yaml"

    def export_has_all() -> bool:
        holds("export", "--out", str(exported))
        return bool(yaml.safe_load(exported.read_text())["quotas"] == set_by_tools)

    set_by_tools = {
        "clients": [
            {"entity": {"user": user, "client-id": "<default>"}, "producer_byte_rate": 1048576}
            for user in sorted(USERS)
        ],
        "topics": {
            **{name: {"producer.byte.rate": 7, "producer.byte.rate.action": "reject"} for name in topics},
            "<default>": {"consumer.byte.rate": 5000, "topic.producer.byte.rate": 70000},
        },
        "brokers": {
            1: {"total.bytes.in.per.sec.threshold": 500_000_000},
            "<default>": {"total.bytes.in.per.sec.threshold": 10**9},
        },
    }
    wait_until(export_has_all, "all quotas in the export")
    wait_until(lambda: proxy("diff", str(exported)).output == "", "no difference")
    wait_until(lambda: counts(holds("import", str(exported), "--prune"))[0] == 0, "nothing to import")

    nothing = tmp_path / "nothing.yaml"
    nothing.write_text("quotas: {clients: [], topics: {}, brokers: {}}")
    removed = holds("import", str(nothing), "--prune", "--yes").stderr
    assert f"- topic {topics[0]}: producer.byte.rate 7 (1000 in the proxy's file)" in removed.splitlines()
    wait_until(lambda: proxy("diff", str(nothing)).stdout == "", "nothing left for a second run")
    left = {"clients": [], "topics": of_file["topics"], "brokers": of_file["brokers"]}
    wait_until(lambda: yaml.safe_load(holds("export").stdout)["quotas"] == left, "the file's quotas")
    returned = holds("set", "--user", "of-file", "--back-to-file").stdout
    assert "producer_byte_rate=111" in returned

    assert counts(holds("import", str(exported)))[0] > 0
    wait_until(
        lambda: proxy("diff", str(exported), "--no-prune").exit_code == 0, "the quotas at every worker"
    )
    wait_until(lambda: counts(holds("import", str(exported)))[0] == 0, "a run that changes nothing")
    absent = proxy("set", "--topic", "no-such-topic", "producer.byte.rate=1")
    assert absent.exit_code == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION" in absent.stderr
    assert proxy("set", "--broker", "7", "total.bytes.in.per.sec.threshold=1").exit_code == 1


def test_a_plain_broker_has_quotas_of_clients_only(quotas: Run, tmp_path: Path) -> None:
    file = tmp_path / "quotas.yaml"
    file.write_text("quotas: {topics: {orders: {producer.byte.rate: 1}}}")
    assert quotas("import", str(file)).exit_code == 2
    assert quotas("set", "--topic", "orders", "producer.byte.rate=1").exit_code == 1
    assert "topics" not in yaml.safe_load(quotas("export").stdout)["quotas"]
    assert quotas("set", "--user", "a", "--back-to-file").exit_code == 1
